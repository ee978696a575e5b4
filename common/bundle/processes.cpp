// processes.json: the recorded processes of the process tree, and the largest others of the memory
// cgroup.
//
// Members are found by their recordings: in the session directory, and, for dead ones, in the
// bundles of the dump directory. Each process is listed once. Its own recording has precedence over
// its bundles; the row names the latest bundle. What cannot be read is left out without an error.
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "common/bundle/directory.h"
#include "common/bundle/files.h"
#include "common/bundle/manifest.h"
#include "common/bundle/process_group.h"
#include "common/bundle/session_summary.h"
#include "common/facts/processes.h"
#include "common/facts/writer.h"
#include "common/session/directories.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using session::Header;
using session::State;

constexpr std::size_t kMaxRecordings = 384;  // recordings in one directory
constexpr std::size_t kMaxProcesses = 2 * kMaxRecordings + 1;
constexpr std::size_t kMaxListed = 256;      // rows
constexpr std::size_t kMetadataBytes = 512;  // the beginning, which has the outcome

// How two buffers of the Workspace are divided.
struct ScanMemory {
  alignas(Header) char header[session::kHeaderBytes];
  char metadata[kMetadataBytes];
  char pids[16 * 1024];
};
static_assert(sizeof(ScanMemory) <= sizeof(Workspace{}.text) && alignof(ScanMemory) <= 8);
static_assert(kMaxProcesses * sizeof(RecordedProcess) <= sizeof(Workspace{}.sort) &&
              alignof(RecordedProcess) <= 8);

// A directory, closed by the destructor.
class Directory {
 public:
  Directory(int parent, const char* path) noexcept
      : fd_(path == nullptr ? -1
                            : system::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {}
  ~Directory() {
    if (fd_ >= 0) system::close(fd_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  int fd() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  const int fd_;
};

// The spaces of host memory that limits count.
constexpr Space kHostSpaces[] = {Space::heap, Space::map};

class Processes {
 public:
  explicit Processes(Job& job) noexcept
      : job_(job),
        header_(job.view.header()),
        memory_(*reinterpret_cast<ScanMemory*>(job.work.text)),
        all_(reinterpret_cast<RecordedProcess*>(job.work.sort), kMaxProcesses),
        sessions_(AT_FDCWD, job.cause.session_directory) {}

  void find() noexcept;
  std::string_view tree(std::span<char> buffer) const noexcept;
  void write(text::JsonWriter&) noexcept;

 private:
  bool may_scan() noexcept;
  RecordedProcess* entry_of(const Header&) noexcept;
  void add_session(const char* file) noexcept;
  void add_bundle(const char* name) noexcept;

  void write_tree(text::JsonWriter&) noexcept;
  void write_self(text::JsonWriter&) noexcept;
  bool write_recorded(text::JsonWriter&, const RecordedProcess&) noexcept;
  void write_others(text::JsonWriter&, std::span<const OtherProcess>) noexcept;

  std::string_view outcome_of(const Header&, bool alive) noexcept;
  std::string_view outcome_in(const Directory& bundle, bool alive) noexcept;

  Job& job_;
  const Header& header_;
  ScanMemory& memory_;
  const std::span<RecordedProcess> all_;
  std::size_t count_ = 0;
  std::size_t scanned_ = 0;
  std::size_t left_out_ = 0;
  const Directory sessions_;
  char outcome_[32] = {};
  char program_[64] = {};
};

// --- Finding ------------------------------------------------------------------------------------

// Counts a recording of the current directory: false beyond the limit.
bool Processes::may_scan() noexcept {
  if (scanned_ < kMaxRecordings) return ++scanned_, true;
  return ++left_out_, false;
}

// The process' entry, created if new; null: its pid is of another host, boot or namespace.
RecordedProcess* Processes::entry_of(const Header& header) noexcept {
  if (!have_comparable_pids(header, header_)) return nullptr;
  const auto found = all_.first(count_);
  const auto same = std::find_if(found.begin(), found.end(), [&](const RecordedProcess& process) {
    return process.pid == header.pid && process.start_ticks == header.start_ticks;
  });
  if (same != found.end()) return &*same;
  RecordedProcess& process = all_[count_++];
  process = {};
  process.pid = header.pid;
  process.parent_pid = header.parent_pid;
  process.start_ticks = header.start_ticks;
  return &process;
}

// After an exec a process has two recordings: the later one is of the running program.
void Processes::add_session(const char* file) noexcept {
  const std::string_view name{file};
  if (!name.ends_with(session::kFileSuffix) || name.size() >= sizeof(RecordedProcess::session) ||
      !may_scan())
    return;
  const SessionSummary recording{sessions_.fd(), file, memory_.header};
  RecordedProcess* const process = recording.is_session() ? entry_of(recording.header()) : nullptr;
  if (process == nullptr || recording.header().start_realtime_ns < process->recorded_since) return;
  process->recorded_since = recording.header().start_realtime_ns;
  text::Text{process->session}.add(name);
}

// In a bundle's name, what follows the backend sorts by time.
bool is_later(std::string_view name, std::string_view than) noexcept {
  const auto time_of = [](std::string_view bundle) {
    return bundle.substr(std::min(bundle.find('_', bundle.find('_') + 1), bundle.size()));
  };
  const std::string_view one = time_of(name), other = time_of(than);
  return one.size() != other.size() ? one.size() > other.size() : one > other;
}

void Processes::add_bundle(const char* name) noexcept {
  if (!is_bundle_name(name) || std::strlen(name) >= sizeof(RecordedProcess::bundle) || !may_scan())
    return;
  const Directory bundle{job_.dump_directory, name};
  if (!bundle.is_open()) return;
  const SessionSummary recording{bundle.fd(), "recording.oomrec", memory_.header};
  RecordedProcess* const process = recording.is_session() ? entry_of(recording.header()) : nullptr;
  if (process != nullptr && is_later(name, process->bundle)) text::Text{process->bundle}.add(name);
}

void Processes::find() noexcept {
  entry_of(header_);  // entry 0 is this process
  // The JSON file's buffer is free: the file is not open yet.
  char* const listing = job_.work.json;
  constexpr std::size_t kListingBytes = sizeof job_.work.json;
  if (sessions_.is_open())
    system::for_each_entry(sessions_.fd(), listing, kListingBytes,
                           [this](const char* file) { add_session(file); });
  scanned_ = 0;
  // A new descriptor: reading must not move the position of the caller's.
  if (const Directory bundles{job_.dump_directory, "."}; bundles.is_open())
    system::for_each_entry(bundles.fd(), listing, kListingBytes,
                           [this](const char* name) { add_bundle(name); });
  text::Text{all_[0].bundle}.add(job_.work.name);

  const auto found = all_.first(count_);
  set_relations(found);
  std::sort(found.begin(), found.end(),
            [](const RecordedProcess& one, const RecordedProcess& other) {
              if (one.relation != other.relation) return one.relation < other.relation;
              return one.start_ticks != other.start_ticks ? one.start_ticks < other.start_ticks
                                                          : one.pid < other.pid;
            });
}

// The name that `oomrec run` gave it, else the key of the group's first process: it may have ended
// before, and a child of its own be the first now.
std::string_view Processes::tree(std::span<char> buffer) const noexcept {
  const std::string_view named = job_.view.string(header_.process_tree);
  if (!named.empty()) return text::Text{buffer.data(), buffer.size()}.add(named).view();
  const RecordedProcess* first = &all_[0];
  for (const RecordedProcess& process : all_.first(count_))
    if (process.relation == Relation::parent || process.relation == Relation::ancestor)
      first = process.start_ticks < first->start_ticks ? &process : first;
  return process_key(header_, first->pid, first->start_ticks, buffer);
}

// --- Writing ------------------------------------------------------------------------------------

std::uint64_t rss_of(const Header& header, bool alive) noexcept {
  const std::uint64_t now = alive && is_visible_by_pid(header) ? resident_bytes(header.pid) : 0;
  return now != 0 ? now : header.health.rss_bytes.load(std::memory_order_relaxed);
}

// The highest peak of one host space, or the live bytes of all: a lower bound of the true peak.
std::uint64_t peak_bytes(const Header& header, std::uint64_t live_bytes) noexcept {
  std::uint64_t peak = live_bytes;
  for (const Space space : kHostSpaces) {
    const auto number = static_cast<std::size_t>(space);
    peak = std::max(peak, header.spaces[number].peak_bytes.load(std::memory_order_relaxed));
  }
  return peak;
}

// From the process' own recording.
std::string_view Processes::outcome_of(const Header& header, bool alive) noexcept {
  const auto state = static_cast<State>(header.state.load(std::memory_order_relaxed));
  if (alive || (state == State::replaced && is_visible_by_pid(header)))
    return outcome_text(OutcomeKind::running, 0, outcome_);
  if (state == State::exited)
    return outcome_text(OutcomeKind::exited, header.exit_status.load(std::memory_order_relaxed),
                        outcome_);
  const std::uint32_t signal = header.crash.signal.load(std::memory_order_relaxed);
  if (signal != 0)
    return outcome_text(OutcomeKind::signal, static_cast<std::int32_t>(signal), outcome_);
  for (const session::EndedChild& child : header_.ended)  // children that this process waited for
    if (child.pid == header.pid && WIFSIGNALED(child.wait_status) &&
        child.time_ns.load(std::memory_order_acquire) > header.start_monotonic_ns)
      return outcome_text(OutcomeKind::signal, WTERMSIG(child.wait_status), outcome_);
  return outcome_text(OutcomeKind::unknown, 0, outcome_);
}

// From the metadata of its latest bundle.
std::string_view Processes::outcome_in(const Directory& bundle, bool alive) noexcept {
  if (alive) return outcome_text(OutcomeKind::running, 0, outcome_);
  const long bytes =
      system::read_file_at(bundle.fd(), "metadata.json", memory_.metadata, sizeof memory_.metadata);
  const std::string_view word = value_in(
      {memory_.metadata, bytes > 0 ? static_cast<std::size_t>(bytes) : 0}, facts::kOutcomeKey);
  if (word.empty() || word == name_of(OutcomeKind::running))
    return outcome_text(OutcomeKind::unknown, 0, outcome_);
  return text::Text{outcome_}.add(word).view();
}

using Row = facts::StoredProcess<std::string_view>;

// Without figures, outcome and program. `key`: a buffer for its key.
Row row_of(const RecordedProcess& process, const Header& header, std::span<char> key) noexcept {
  Row row;
  row.pid = header.pid;
  row.parent_pid = header.parent_pid;
  row.relation = process.relation;
  row.bundle = process.bundle;
  row.process = process_key(header, key);
  return row;
}

void Processes::write_self(text::JsonWriter& json) noexcept {
  char key[96];
  Row row = row_of(all_[0], header_, key);
  row.program = text::base_name(job_.view.string(header_.executable));
  for (const Space space : kHostSpaces)
    row.live_bytes +=
        static_cast<std::uint64_t>(std::max(std::int64_t{0}, job_.view.totals(space).live_bytes));
  row.peak_bytes = peak_bytes(header_, row.live_bytes);
  row.rss_bytes = rss_of(header_, job_.cause.alive);
  row.outcome = outcome_text(job_.cause.outcome, job_.cause.outcome_value, outcome_);
  facts::write(json, row);
}

// False: its recording is gone.
bool Processes::write_recorded(text::JsonWriter& json, const RecordedProcess& process) noexcept {
  const bool has_session = process.session[0] != '\0';
  const Directory bundle{job_.dump_directory, has_session ? nullptr : process.bundle};
  const SessionSummary recording{has_session ? sessions_.fd() : bundle.fd(),
                                 has_session ? process.session : "recording.oomrec",
                                 memory_.header};
  if (!recording.is_session()) return false;
  const Header& header = recording.header();
  const bool alive = has_session
                         ? session::life_of(session::HeaderStart{header}) == session::Life::alive
                         : is_visible_by_pid(header);
  char key[96];
  Row row = row_of(process, header, key);
  row.program = recording.base_name(program_of(header), program_);
  const bool replaced = header.state == static_cast<std::uint32_t>(State::replaced);
  for (const Space space : kHostSpaces)
    row.live_bytes += replaced ? 0 : recording.live_bytes(space);
  row.peak_bytes = peak_bytes(header, row.live_bytes);
  row.rss_bytes = rss_of(header, alive);
  row.outcome = has_session ? outcome_of(header, alive) : outcome_in(bundle, alive);
  facts::write(json, row);
  return true;
}

void Processes::write_tree(text::JsonWriter& json) noexcept {
  json.begin_array();
  std::size_t listed = 0;
  for (const RecordedProcess& process : all_.first(count_)) {
    if (process.relation == Relation::none) continue;
    if (listed == kMaxListed) {
      ++left_out_;
    } else if (process.relation == Relation::self) {
      write_self(json);
      ++listed;
    } else {
      listed += write_recorded(json, process) ? 1 : 0;
    }
  }
  json.end_array();
}

void Processes::write_others(text::JsonWriter& json,
                             std::span<const OtherProcess> others) noexcept {
  const auto found = all_.first(count_);
  json.begin_array();
  for (const OtherProcess& other : others) {
    const bool recorded =
        std::any_of(found.begin(), found.end(), [&](const RecordedProcess& process) {
          return process.pid == other.pid && process.start_ticks == system::start_ticks(other.pid);
        });
    facts::write(
        json, facts::OtherProcess<std::string_view>{other.pid, program_of(other.pid, memory_.pids),
                                                    other.rss_bytes, recorded});
  }
  json.end_array();
}

void Processes::write(text::JsonWriter& json) noexcept {
  struct Tree {
    Processes& of;
    void write(text::JsonWriter& to) const noexcept { of.write_tree(to); }
  };
  struct Others {
    Processes& of;
    std::span<const OtherProcess> largest;
    void write(text::JsonWriter& to) const noexcept { of.write_others(to, largest); }
  };
  struct File : facts::Processes {
    Tree processes;
    std::string_view cgroup;
    Others others;
    std::string_view session_directory;
    const std::size_t& left_out;  // counted while the tree is written
  };
  const std::string_view cgroup = job_.view.string(header_.cgroup);
  text::Text directory{job_.work.line};
  directory.add(cgroup);
  OtherProcess largest[kMaxOtherProcesses];
  const int count =
      cgroup.empty() || directory.truncated()
          ? -1
          : find_largest_others(directory.c_str(), all_.first(count_), memory_.pids, largest);
  const char* const sessions = job_.cause.session_directory;
  facts::write(json, File{{},
                          {*this},
                          count < 0 ? std::string_view{} : directory.view(),
                          {*this, {largest, static_cast<std::size_t>(std::max(0, count))}},
                          sessions != nullptr ? sessions : std::string_view{},
                          left_out_});
}

}  // namespace

bool write_processes(InHook hook, Job& job) noexcept {
  Processes processes{job};
  processes.find();
  processes.tree(job.tree);
  JsonFile file{hook, job, "processes.json"};
  processes.write(file.json());
  return file.done();
}

}  // namespace oomrec::bundle
