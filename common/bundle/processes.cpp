// processes.json: who else is there. The recorded processes of the group, and the largest others of
// the memory cgroup.
//
// Found from recordings: those in the session directory, and of members that are dead already those
// in the bundles of the dump directory. A process is listed once; what its own recording says goes
// before what a bundle of it says, and it is the latest bundle that is named. What cannot be read
// is left out, and fails nothing.
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "common/bundle/cgroup_processes.h"
#include "common/bundle/directory.h"
#include "common/bundle/files.h"
#include "common/bundle/process_group.h"
#include "common/bundle/retention.h"
#include "common/bundle/session_summary.h"
#include "common/calls/calls.h"
#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using session::Header;
using session::State;

constexpr std::size_t kMostLookedAt = 384;  // recordings in one directory
constexpr std::size_t kMostKnown = 2 * kMostLookedAt + 1;
constexpr std::size_t kMostListed = 256;     // members that are written down
constexpr std::size_t kMetadataBytes = 512;  // of the beginning, where the outcome stands

// The parts of two buffers of the Workspace.
struct Memory {
  alignas(Header) char header[session::kHeaderBytes];
  char metadata[kMetadataBytes];
  char pids[16 * 1024];
};
static_assert(sizeof(Memory) <= sizeof(Workspace{}.text) && alignof(Memory) <= 8);
static_assert(kMostKnown * sizeof(Kin) <= sizeof(Workspace{}.sort) && alignof(Kin) <= 8);

// A directory that is closed when it goes out of sight.
class Directory {
 public:
  Directory(int parent, const char* path) noexcept
      : fd_(path == nullptr ? -1
                            : calls::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {}
  ~Directory() {
    if (fd_ >= 0) calls::close(fd_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  int fd() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  const int fd_;
};

// One row of the list.
struct Member {
  std::string_view program;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t rss_bytes = 0;  // 0: not known
  std::string_view outcome;
};

// Of what the host has, as the limits count.
constexpr Space kHostSpaces[] = {Space::heap, Space::map};

class Processes {
 public:
  explicit Processes(Job& job) noexcept
      : job_(job),
        header_(job.view.header()),
        memory_(*reinterpret_cast<Memory*>(job.work.text)),
        all_(reinterpret_cast<Kin*>(job.work.sort), kMostKnown),
        sessions_(AT_FDCWD, job.cause.session_directory) {}

  void find() noexcept;
  void write(text::JsonWriter&) noexcept;

 private:
  bool may_look() noexcept;
  Kin* entry_of(const Header&) noexcept;
  void add_session(const char* file) noexcept;
  void add_bundle(const char* name) noexcept;

  void write_self(text::JsonWriter&) noexcept;
  bool write_recorded(text::JsonWriter&, const Kin&) noexcept;
  void write_row(text::JsonWriter&, const Kin&, const Header&, const Member&) noexcept;
  void write_others(text::JsonWriter&) noexcept;

  std::string_view outcome_of(const Header&, bool alive) noexcept;
  std::string_view outcome_in(const Directory& bundle, bool alive) noexcept;

  Job& job_;
  const Header& header_;
  Memory& memory_;
  const std::span<Kin> all_;
  std::size_t known_ = 0;
  std::size_t looked_at_ = 0;
  std::size_t left_out_ = 0;
  const Directory sessions_;
  char outcome_[32] = {};
  char program_[64] = {};
};

// --- Finding ------------------------------------------------------------------------------------

// At one more recording of this directory.
bool Processes::may_look() noexcept {
  if (looked_at_ < kMostLookedAt) return ++looked_at_, true;
  return ++left_out_, false;
}

// The process' own entry, made when it has none; null: its pid means nothing here.
Kin* Processes::entry_of(const Header& header) noexcept {
  if (!counts_pids_alike(header, header_)) return nullptr;
  const auto known = all_.first(known_);
  const auto found = std::find_if(known.begin(), known.end(), [&](const Kin& kin) {
    return kin.pid == header.pid && kin.start_ticks == header.start_ticks;
  });
  if (found != known.end()) return &*found;
  Kin& kin = all_[known_++];
  kin = {};
  kin.pid = header.pid;
  kin.parent_pid = header.parent_pid;
  kin.start_ticks = header.start_ticks;
  return &kin;
}

// After an exec a process has two recordings: the later one is of the program that runs.
void Processes::add_session(const char* file) noexcept {
  const std::string_view name{file};
  if (!name.ends_with(session::kFileSuffix) || name.size() >= sizeof(Kin::session) || !may_look())
    return;
  const Glance recording{sessions_.fd(), file, memory_.header};
  Kin* const kin = recording.is_session() ? entry_of(recording.header()) : nullptr;
  if (kin == nullptr || recording.header().start_realtime_ns < kin->recorded_since) return;
  kin->recorded_since = recording.header().start_realtime_ns;
  text::Text{kin->session}.add(name);
}

// Of two bundles the later: what follows the backend in a name sorts by time.
bool is_later(std::string_view name, std::string_view than) noexcept {
  const auto time_of = [](std::string_view bundle) {
    return bundle.substr(std::min(bundle.find('_', bundle.find('_') + 1), bundle.size()));
  };
  const std::string_view one = time_of(name), other = time_of(than);
  return one.size() != other.size() ? one.size() > other.size() : one > other;
}

void Processes::add_bundle(const char* name) noexcept {
  if (!is_bundle_name(name) || std::strlen(name) >= sizeof(Kin::bundle) || !may_look()) return;
  const Directory bundle{job_.dump_directory, name};
  if (!bundle.is_open()) return;
  const Glance recording{bundle.fd(), "recording.oomrec", memory_.header};
  Kin* const kin = recording.is_session() ? entry_of(recording.header()) : nullptr;
  if (kin != nullptr && is_later(name, kin->bundle)) text::Text{kin->bundle}.add(name);
}

void Processes::find() noexcept {
  entry_of(header_);  // the first
  // The buffer of the JSON file, which is not open yet.
  char* const listing = job_.work.json;
  constexpr std::size_t kListingBytes = sizeof job_.work.json;
  if (sessions_.is_open())
    calls::for_each_entry(sessions_.fd(), listing, kListingBytes,
                          [this](const char* file) { add_session(file); });
  looked_at_ = 0;
  // Opened anew: the position of the caller's descriptor is its own.
  if (const Directory bundles{job_.dump_directory, "."}; bundles.is_open())
    calls::for_each_entry(bundles.fd(), listing, kListingBytes,
                          [this](const char* name) { add_bundle(name); });
  text::Text{all_[0].bundle}.add(job_.work.name);

  const auto known = all_.first(known_);
  relate(known);
  std::sort(known.begin(), known.end(), [](const Kin& one, const Kin& other) {
    if (one.relation != other.relation) return one.relation < other.relation;
    return one.start_ticks != other.start_ticks ? one.start_ticks < other.start_ticks
                                                : one.pid < other.pid;
  });
}

// --- Writing ------------------------------------------------------------------------------------

std::uint64_t rss_of(const Header& header, bool alive) noexcept {
  const std::uint64_t now = alive && is_in_sight(header) ? resident_bytes(header.pid) : 0;
  return now != 0 ? now : header.health.rss_bytes.load(std::memory_order_relaxed);
}

// The highest that one of the host's spaces came to, or all of them hold now.
std::uint64_t peak_bytes(const Header& header, std::uint64_t live_bytes) noexcept {
  std::uint64_t peak = live_bytes;
  for (const Space space : kHostSpaces) {
    const auto number = static_cast<std::size_t>(space);
    peak = std::max(peak, header.spaces[number].peak_bytes.load(std::memory_order_relaxed));
  }
  return peak;
}

// Of a process that is in its own recording only.
std::string_view Processes::outcome_of(const Header& header, bool alive) noexcept {
  const auto state = static_cast<State>(header.state.load(std::memory_order_relaxed));
  if (alive || (state == State::replaced && is_in_sight(header)))
    return outcome_text(OutcomeKind::running, 0, outcome_);
  if (state == State::exited)
    return outcome_text(OutcomeKind::exited, header.exit_status.load(std::memory_order_relaxed),
                        outcome_);
  const std::uint32_t signal = header.crash.signal.load(std::memory_order_relaxed);
  if (signal != 0)
    return outcome_text(OutcomeKind::signal, static_cast<std::int32_t>(signal), outcome_);
  for (const session::EndedChild& child : header_.ended)  // that this process waited for
    if (child.pid == header.pid && WIFSIGNALED(child.wait_status) &&
        child.time_ns.load(std::memory_order_acquire) > header.start_monotonic_ns)
      return outcome_text(OutcomeKind::signal, WTERMSIG(child.wait_status), outcome_);
  return outcome_text(OutcomeKind::unknown, 0, outcome_);
}

// Of one that only a bundle tells of, by its metadata.
std::string_view Processes::outcome_in(const Directory& bundle, bool alive) noexcept {
  if (alive) return outcome_text(OutcomeKind::running, 0, outcome_);
  const long bytes =
      calls::read_file(bundle.fd(), "metadata.json", memory_.metadata, sizeof memory_.metadata);
  const std::string_view word = manifest_value(
      {memory_.metadata, bytes > 0 ? static_cast<std::size_t>(bytes) : 0}, "outcome");
  if (word.empty() || word == name_of(OutcomeKind::running))
    return outcome_text(OutcomeKind::unknown, 0, outcome_);
  return text::Text{outcome_}.add(word).view();
}

void Processes::write_row(text::JsonWriter& json, const Kin& kin, const Header& header,
                          const Member& member) noexcept {
  char key[96];
  json.begin_object(true);
  json.key("pid").signed_number(header.pid);
  json.key("ppid").signed_number(header.parent_pid);
  json.key("program").string_or_null(member.program);
  json.key("relation").string(name_of(kin.relation));
  json.key("live_bytes").number(member.live_bytes);
  json.key("peak_bytes").number(member.peak_bytes);
  json.key("rss_bytes");
  member.rss_bytes == 0 ? json.null() : json.number(member.rss_bytes);
  json.key("outcome").string(member.outcome);
  json.key("bundle").string_or_null(kin.bundle);
  json.key("process").string(process_key(header, key));
  json.end_object();
}

void Processes::write_self(text::JsonWriter& json) noexcept {
  Member member;
  member.program = text::base_name(job_.view.string(header_.executable));
  for (const Space space : kHostSpaces)
    member.live_bytes +=
        static_cast<std::uint64_t>(std::max(std::int64_t{0}, job_.view.totals(space).live_bytes));
  member.peak_bytes = peak_bytes(header_, member.live_bytes);
  member.rss_bytes = rss_of(header_, job_.cause.alive);
  member.outcome = outcome_text(job_.cause.outcome, job_.cause.outcome_value, outcome_);
  write_row(json, all_[0], header_, member);
}

// False: its recording has gone meanwhile.
bool Processes::write_recorded(text::JsonWriter& json, const Kin& kin) noexcept {
  const bool has_session = kin.session[0] != '\0';
  const Directory bundle{job_.dump_directory, has_session ? nullptr : kin.bundle};
  const Glance recording{has_session ? sessions_.fd() : bundle.fd(),
                         has_session ? kin.session : "recording.oomrec", memory_.header};
  if (!recording.is_session()) return false;
  const Header& header = recording.header();
  const bool alive =
      has_session ? session::life_of(header) == session::Life::alive : is_in_sight(header);
  Member member;
  member.program = recording.base_name(header.executable, program_);
  const bool replaced = header.state == static_cast<std::uint32_t>(State::replaced);
  for (const Space space : kHostSpaces)
    member.live_bytes += replaced ? 0 : recording.live_bytes(space);
  member.peak_bytes = peak_bytes(header, member.live_bytes);
  member.rss_bytes = rss_of(header, alive);
  member.outcome = has_session ? outcome_of(header, alive) : outcome_in(bundle, alive);
  write_row(json, kin, header, member);
  return true;
}

void Processes::write_others(text::JsonWriter& json) noexcept {
  const auto known = all_.first(known_);
  const std::string_view cgroup = job_.view.string(header_.cgroup);
  text::Text directory{job_.work.line};
  directory.add(cgroup);
  Neighbour largest[kMostNeighbours];
  const int count = cgroup.empty() || directory.truncated()
                        ? -1
                        : largest_neighbours(directory.c_str(), known, memory_.pids, largest);
  json.key("cgroup");
  count < 0 ? json.null() : json.string(directory.view());
  json.key("others").begin_array();
  for (int i = 0; i < count; ++i) {
    const std::int32_t pid = largest[i].pid;
    const bool recorded = std::any_of(known.begin(), known.end(), [&](const Kin& kin) {
      return kin.pid == pid && kin.start_ticks == system::start_ticks(pid);
    });
    json.begin_object(true);
    json.key("pid").signed_number(pid);
    json.key("program").string_or_null(program_of(pid, memory_.pids));
    json.key("rss_bytes").number(largest[i].rss_bytes);
    json.key("recorded").boolean(recorded);
    json.end_object();
  }
  json.end_array();
}

void Processes::write(text::JsonWriter& json) noexcept {
  json.begin_object();
  json.key("schema_version").number(1);
  json.key("processes").begin_array();
  std::size_t listed = 0;
  for (const Kin& kin : all_.first(known_)) {
    if (kin.relation == Relation::none) continue;
    if (listed == kMostListed) {
      ++left_out_;
    } else if (kin.relation == Relation::self) {
      write_self(json);
      ++listed;
    } else {
      listed += write_recorded(json, kin) ? 1 : 0;
    }
  }
  json.end_array();
  write_others(json);
  json.key("left_out").number(left_out_);
  json.end_object();
}

}  // namespace

bool write_processes(InHook hook, Job& job) noexcept {
  Processes processes{job};
  processes.find();
  JsonFile file{hook, job, "processes.json"};
  processes.write(file.json());
  return file.done();
}

}  // namespace oomrec::bundle
