#include "tools/recording/reading/recording.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "common/residency/rows.h"
#include "common/session/directories.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;

class RecordingFile {
 public:
  explicit RecordingFile(const ForeignPath& path) : file_(path) {
    if (file_.problem().empty()) {
      bytes_ = std::min(file_.bytes(), session::kMostBytes);
      return;
    }
    const std::string name = printable(path.path().string());
    if (file_.error() == 0)
      throw Error{Exit::bad_input, fmt::format("{} is not a recording", name),
                  "Give a bundle's directory, or the recording.oomrec in it."};
    if (file_.error() == ELOOP && !path.may_be_link())
      throw Error{Exit::bad_input, fmt::format("{} {}", name, file_.problem()),
                  "A bundle contains its files: copy the recording into it, or read it by name."};
    throw Error{Exit::bad_input,
                fmt::format("cannot read {}: {}", name, std::strerror(file_.error())),
                "`oomrec ls` lists the bundles of a directory."};
  }

  uid_t owner() const { return file_.status().st_uid; }
  std::uint64_t bytes() const { return bytes_; }

  // Copies the data between the holes; `to` must be zeroed.
  void read_into(std::byte* to) const {
    std::uint64_t at = 0;
    while (at < bytes_) {
      const off_t data = lseek(file_.descriptor(), static_cast<off_t>(at), SEEK_DATA);
      if (data < 0 && errno == ENXIO) return;
      if (data > 0) at = static_cast<std::uint64_t>(data);
      if (at >= bytes_) return;
      const std::uint64_t block = std::min(kBlockBytes, bytes_ - at);
      make_resident(to + at, block);
      const ssize_t got = pread(file_.descriptor(), to + at, block, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      at += static_cast<std::uint64_t>(got);
    }
  }

 private:
  // All at once (since Linux 5.14): otherwise each page costs a fault.
  static void make_resident(std::byte* bytes, std::uint64_t count) {
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::byte* const start = bytes - reinterpret_cast<std::uintptr_t>(bytes) % page;
    madvise(start, static_cast<std::size_t>(bytes + count - start), MADV_POPULATE_WRITE);
  }

  const ForeignFile file_;
  std::uint64_t bytes_ = 0;
};

// Whether a process created this file, and ended before it wrote anything.
bool was_never_begun(const session::View& view, std::span<const std::byte> bytes,
                     const std::filesystem::path& file) {
  const auto start = bytes.first(std::min<std::size_t>(bytes.size(), session::kHeaderBytes));
  return file.extension() == session::kFileSuffix &&
         (view.problem() == session::Problem::too_short ||
          view.problem() == session::Problem::not_a_session) &&
         std::ranges::all_of(start, [](std::byte byte) { return byte == std::byte{}; });
}

std::string problem_text(session::Problem problem, const session::View& view) {
  switch (problem) {
    case session::Problem::none:
      return {};
    case session::Problem::too_short:
      return "is not a complete recording";
    case session::Problem::not_a_session:
      return "is not an oomrec recording";
    case session::Problem::newer_format:
      return fmt::format("has format {}; this oomrec reads up to {}", view.format(),
                         session::kVersion);
    case session::Problem::unfinished:
      return "holds no data: its process died in its first moments";
    case session::Problem::damaged:
      return "is damaged: its header is inconsistent";
  }
  return "cannot be read";
}

const char* problem_advice(session::Problem problem, const std::filesystem::path& file) {
  constexpr const char* kWhatToGive =
      "Give a bundle's directory, a recording, or the pid or name of a recorded process.";
  switch (problem) {
    case session::Problem::newer_format:
      return "Read it with the oomrec that recorded it: metadata.json names the version.";
    case session::Problem::unfinished:
      return "Nothing was recorded. `oomrec recover` removes it.";
    case session::Problem::not_a_session:
      return kWhatToGive;
    case session::Problem::too_short:
      if (file.filename() != "recording.oomrec") return kWhatToGive;
      [[fallthrough]];
    default:
      return "Was it copied completely? metadata.json and events.json beside it may still be "
             "readable.";
  }
}

uid_t owner_of(const std::filesystem::path& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 ? status.st_uid : static_cast<uid_t>(-1);
}

std::uint64_t at_least_zero(std::int64_t sum) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, sum));
}

}  // namespace

Recording::Recording(const std::filesystem::path& file) : Recording(ForeignPath::named(file)) {}

Recording::Recording(const ForeignPath& file) : path_(file.path()) {
  const RecordingFile source{file};
  owner_ = source.owner();
  // Holes cost no memory, and the rest is given back. From calloc they would cost it for all but
  // the first recording: after the first free() the allocator keeps such blocks, and zeroes them
  // whole.
  const std::uint64_t copied = source.bytes() + most_look_bytes();
  void* const copy =
      mmap(nullptr, copied, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) throw std::bad_alloc{};
  copy_ = static_cast<std::byte*>(copy);
  bytes_.reset(copy_, [copied](std::byte* bytes) { munmap(bytes, copied); });
  source.read_into(copy_);
  open_view(source.bytes());
}

Recording::Recording(const std::filesystem::path& file, std::shared_ptr<const std::byte> session,
                     std::uint64_t bytes)
    : path_(file), owner_(owner_of(file)), bytes_(std::move(session)) {
  open_view(bytes);
}

void Recording::open_view(std::uint64_t bytes) {
  view_ = session::View{session::Bytes::contiguous(bytes_.get(), bytes)};
  if (view_.problem() != session::Problem::none) {
    const session::Problem problem = was_never_begun(view_, {bytes_.get(), bytes}, path_)
                                         ? session::Problem::unfinished
                                         : view_.problem();
    throw Error{Exit::bad_input,
                fmt::format("{} {}", printable(path_.string()), problem_text(problem, view_)),
                problem_advice(problem, path_)};
  }
  if (header().file_bytes > bytes) {
    throw Error{Exit::bad_input,
                fmt::format("{} is cut short: {} bytes of {}", printable(path_.string()),
                            count_text(bytes), count_text(header().file_bytes)),
                problem_advice(session::Problem::damaged, path_)};
  }
  std::vector<session::ResidencyRow> rows;
  view_.for_each_residency_row([&](const session::ResidencyRow& row) { rows.push_back(row); });
  if (const session::Residency* const look = view_.residency())
    set_residency(*look, std::move(rows));
}

void Recording::set_residency(const session::Residency& found,
                              std::vector<session::ResidencyRow> rows) {
  residency_ = {found.time_ns,
                found.touched_bytes,
                found.untouched_bytes,
                found.live_bytes,
                found.large_block_bytes,
                found.variable_bytes,
                (found.flags & session::kResidencyPartial) != 0,
                {}};
  std::copy_n(found.kind_bytes, session::kResidentKinds, residency_.kind_bytes.begin());
  residency_rows_ = std::move(rows);
  sort_rows();
}

void Recording::sort_rows() {
  std::ranges::sort(residency_rows_,
                    [](const auto& a, const auto& b) { return a.holder < b.holder; });
}

std::vector<HolderFigures> Recording::holders() const {
  std::vector<HolderFigures> rows;
  const std::uint64_t count = view_.count(TableId::holders);
  rows.reserve(count);
  std::vector<std::size_t> row_of(count, count);
  session::Holder holder{};
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view_.read(TableId::holders, i, holder) || holder.space >= kSpaceCount) continue;
    row_of[i] = rows.size();
    HolderFigures row;
    row.entry = static_cast<std::uint32_t>(i);
    row.temporary_count = holder.temporary_count;
    row.node = holder.node;
    row.space = static_cast<Space>(holder.space);
    row.api = static_cast<Api>(holder.api);
    row.estimated = (holder.flags & session::kHolderEstimated) != 0;
    row.live_bytes = holder.live_bytes;
    row.live_count = holder.live_count;
    row.total_bytes = holder.total_bytes;
    row.total_count = holder.total_count;
    const bool changed_since = holder.peak_epoch == session::peak_epoch_of(header(), holder);
    row.peak_bytes = changed_since ? holder.peak_bytes.load() : row.live_bytes;
    row.peak_count = changed_since ? holder.peak_count.load() : row.live_count;
    row.is_object_pool = row.space == Space::map && session::is_object_pool(view_, row.node);
    if (row.is_object_pool) {  // the estimates of its objects may exceed it
      row.live_bytes = at_least_zero(static_cast<std::int64_t>(row.live_bytes));
      row.peak_bytes = at_least_zero(static_cast<std::int64_t>(row.peak_bytes));
    }
    rows.push_back(row);
  }
  view_.for_each_sum([&](const session::View::PendingSum& pending) {
    const session::HolderSum& sum = pending.sum;
    const std::uint64_t number = sum.holder;
    if (number >= count || row_of[number] == count) return;
    HolderFigures& row = rows[row_of[number]];
    row.live_bytes += sum.live_bytes();
    row.live_count += sum.live_count();
    row.total_bytes += sum.allocated_bytes;
    row.total_count += sum.allocated_count();
    row.temporary_count += pending.temporary_count;
    if (!pending.in_peak) return;
    row.peak_bytes += sum.live_bytes();
    row.peak_count += sum.live_count();
  });
  // Threads went on while their sums and the holders' figures were copied one after the other: a
  // sum may be missing, or be in both.
  const auto clear_if_negative = [](std::uint64_t& bytes, std::uint64_t& blocks) {
    if (static_cast<std::int64_t>(bytes) < 0 || static_cast<std::int64_t>(blocks) < 0)
      bytes = blocks = 0;
  };
  for (HolderFigures& row : rows) {
    clear_if_negative(row.live_bytes, row.live_count);
    clear_if_negative(row.peak_bytes, row.peak_count);
  }
  scale_estimates(rows);
  add_in_flight(rows);
  add_residency(rows);
  return rows;
}

std::string root_of_process(const std::filesystem::path& recording) {
  constexpr std::string_view kProc = "/proc/";
  const std::string path = recording.string();
  const std::size_t end = path.find('/', kProc.size());
  if (!path.starts_with(kProc) || end == path.npos) return {};
  return path.substr(0, end) + "/root";
}

std::uint64_t Recording::event_count() const {
  std::uint64_t events = 0;
  for (const auto& lane : session::entries<session::Lane>(view_, TableId::lanes))
    events += lane.ring_next - lane.stamps;
  return events;
}

std::vector<std::string> Recording::arguments() const {
  std::vector<std::string> words;
  std::string_view line = view_.string(header().command_line);
  if (line.ends_with('\0')) line.remove_suffix(1);
  if (line.empty()) return words;
  for (const std::string_view word : split(line, '\0')) words.emplace_back(word);
  return words;
}

Mode Recording::mode_now() const {
  const auto mode = header().mode_now.load();
  return mode < kModeNames.size() ? static_cast<Mode>(mode) : Mode::sampled;
}

std::uint64_t Recording::end_ns() const {
  std::uint64_t end = std::max(header().start_monotonic_ns, header().last_tick_ns.load());
  for (const auto& failure : session::entries<session::Failure>(view_, TableId::failures))
    end = std::max(end, failure.time_ns);
  for (const auto& mark : session::entries<session::Mark>(view_, TableId::marks))
    end = std::max(end, mark.time_ns);
  return end;
}

std::uint64_t Recording::realtime_of(std::uint64_t monotonic_ns) const {
  return header().start_realtime_ns + (monotonic_ns - header().start_monotonic_ns);
}

SpaceTotals Recording::totals(Space space) const {
  const session::View::Totals sums = view_.totals(space);
  return {at_least_zero(sums.live_bytes), at_least_zero(sums.live_count), sums.allocated_bytes,
          sums.allocated_count};
}

const std::vector<Space>& spaces_that_add_up() {
  static const std::vector<Space> spaces = [] {
    std::vector<Space> found;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_additive(static_cast<Space>(i))) found.push_back(static_cast<Space>(i));
    return found;
  }();
  return spaces;
}

std::uint64_t Recording::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const Space space : spaces_that_add_up()) bytes += totals(space).live_bytes;
  return bytes;
}

std::uint64_t Recording::host_bytes() const {
  std::uint64_t bytes = 0;
  for (const Space space : spaces_that_add_up())
    if (is_on_host(space)) bytes += totals(space).live_bytes;
  return bytes;
}

std::uint64_t Recording::weighed_bytes() const {
  std::uint64_t held = held_bytes();
  for (const RequestInFlight& request : in_flight_) held += request.bytes + request.replaced_bytes;
  if (weight_ != Weight::resident) return held;
  held += residency::header_bytes(view_);
  return held - std::min(held, residency_.untouched_bytes);
}

std::uint64_t Recording::peak_bytes(Space space) const {
  const std::uint64_t published = header().spaces[static_cast<std::size_t>(space)].peak_bytes;
  return std::max(published, totals(space).live_bytes);
}

std::uint64_t Recording::peak_bytes() const {
  std::uint64_t peak = 0;
  std::uint64_t now = 0;
  for (const Space space : spaces_that_add_up()) {
    peak = std::max(peak, peak_bytes(space));
    now += totals(space).live_bytes;
  }
  peak = std::max(peak, now);
  for (const auto& point : session::entries<session::Point>(view_, TableId::points))
    peak = std::max(peak, held_bytes_of(point));
  return peak;
}

}  // namespace oomrec::tools::recording
