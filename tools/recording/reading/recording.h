// A recording in memory: a bundle's recording.oomrec, or the session of a process, alive or dead.
//
// The file is copied, so that another process that truncates or changes it cannot crash us. The
// live view, which reads the same session again and again, maps it instead
// (tools/recording/live/mapping.h). A session has at most kMaxSegments × kSegmentBytes; a longer
// file is cut there. view() checks everything that is read through it.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/session/table.h"
#include "common/session/view.h"
#include "tools/base/foreign_file.h"

namespace oomrec::residency {
struct Look;
}

namespace oomrec::tools::recording {

// A holder's stack and figures. Bytes of the heap are what its blocks take up.
struct HolderFigures {
  std::uint32_t node = 0;
  Space space = Space::heap;
  Api api = Api::none;
  bool estimated = false;       // by samples, or Recording::is_resident_estimated()
  bool is_object_pool = false;  // Python's: free space, that no line holds
  std::uint64_t live_bytes = 0, live_count = 0;
  // Of the live bytes, and of its reservations, those in memory or in swap. Nothing if nobody
  // looked.
  std::optional<std::uint64_t> resident_bytes;
  bool weighs_resident = false;                  // Weight::resident
  std::uint64_t peak_bytes = 0, peak_count = 0;  // at the peak of the space
  std::uint64_t total_bytes = 0, total_count = 0;
  std::uint32_t entry = 0;  // in `holders`
  // Blocks freed before their thread's next allocation; exact mode only.
  std::uint64_t temporary_count = 0;
  // When the oldest live block was allocated (session clock, to the second). Nothing before
  // add_ages(), or if the recording does not contain the holder's blocks.
  std::optional<std::uint64_t> oldest_ns;

  // What it is ranked by at the end. What a look from outside finds touched of reservations and
  // files is not among the live bytes yet.
  std::uint64_t weight_bytes() const {
    const std::uint64_t resident = resident_bytes.value_or(live_bytes);
    return weighs_resident || resident > live_bytes ? resident : live_bytes;
  }
};

// A request that a thread was making when the process was killed: it is not among the live bytes.
struct RequestInFlight {
  Api api = Api::none;
  Space space = Space::heap;
  std::uint64_t bytes = 0;
  std::uint64_t untouched_bytes = 0;  // of which so many cannot have been resident
  std::uint32_t node = 0;
  std::uint32_t thread = 0;  // entry in `threads`
  // Of a realloc: the old block, which its holder (entry in `holders`; 0: none) does not count.
  std::uint64_t replaced_bytes = 0;
  std::uint32_t replaced_holder = 0;
};

// Totals of a space. Live bytes are usable bytes; allocated bytes are requested bytes.
struct SpaceTotals {
  std::uint64_t live_bytes = 0, live_count = 0;
  std::uint64_t allocated_bytes = 0, allocated_count = 0;
};

// What a holder weighs at the end: what it was given, or what of it is in memory or in swap, for
// which the kernel kills.
enum class Weight : std::uint8_t { requested, resident };

// session::Residency without its rows.
struct ResidencyTotals {
  std::uint64_t time_ns = 0;  // 0: nobody has looked
  std::uint64_t touched_bytes = 0, untouched_bytes = 0, live_bytes = 0;
  std::uint64_t large_block_bytes = 0;  // of the heap, live then
  std::uint64_t variable_bytes = 0;     // the executable's static variables
  bool is_partial = false;
  std::array<std::uint64_t, session::kResidentKinds> kind_bytes{};
};

// The root of the process through which a recording was found, /proc/PID/root; empty: it is a file
// of ours.
std::string root_of_process(const std::filesystem::path& recording);

const std::vector<Space>& spaces_that_add_up();  // those for which is_additive() is true

// The live bytes of a Point, a Moment or a Checkpoint: in all spaces that add up, and in those of
// them that are host memory.
std::uint64_t held_bytes_of(const auto& point) {
  std::uint64_t bytes = 0;
  for (const Space space : spaces_that_add_up())
    bytes += point.live_bytes[static_cast<std::size_t>(space)];
  return bytes;
}
std::uint64_t host_bytes_of(const auto& point) {
  std::uint64_t bytes = 0;
  for (const Space space : spaces_that_add_up())
    if (is_on_host(space)) bytes += point.live_bytes[static_cast<std::size_t>(space)];
  return bytes;
}

class Recording {
 public:
  // Throws Error with bad_input if the file cannot be read or does not contain a session.
  explicit Recording(const ForeignPath& file);
  // The same for a file that the user named, or that is not in a bundle.
  explicit Recording(const std::filesystem::path& file);

  // Reads a session in memory without copying it: one that was built from `file`, or the mapping of
  // `file`, which its process may still be writing. Figures are then those of the moment they are
  // read. Throws as above.
  Recording(const std::filesystem::path& file, std::shared_ptr<const std::byte> session,
            std::uint64_t bytes);

  const session::View& view() const { return view_; }
  const session::Header& header() const { return view_.header(); }
  const std::filesystem::path& path() const { return path_; }
  uid_t owner() const { return owner_; }  // of the file; −1: unknown

  std::vector<HolderFigures> holders() const;

  // The requests in flight, the largest first. set_killed(): they count in holders(), and there are
  // none before.
  const std::vector<RequestInFlight>& in_flight() const { return in_flight_; }
  void set_killed();
  // HolderFigures::weight_bytes() of a holder that has so many live bytes.
  std::uint64_t weight_of(std::uint32_t holder, std::uint64_t live_bytes) const;

  // The latest look at the process' pages, if there was one, and what HolderFigures weigh.
  bool has_residency() const { return residency_.time_ns != 0; }
  const ResidencyTotals& residency() const { return residency_; }
  Weight weight() const { return weight_; }
  void set_weight(Weight weight) { weight_ = weight; }
  // So many bytes were resident at the end. What the look and what was obtained since do not
  // explain counts as touched; what cannot have been resident does not. Either is an estimate.
  // Without a look, holders have no more than `most_bytes` together; 0: unknown.
  void note_resident_later(std::uint64_t bytes, std::uint64_t most_bytes);
  // Of that, anonymous memory that nothing on record explains, where that is a notable part and the
  // kernel's own report says so.
  std::uint64_t unexplained_bytes() const { return unexplained_bytes_; }
  // Nobody looked, but what was resident at the end left some of the holders' memory untouched.
  bool is_resident_estimated() const {
    return !has_residency() && (residency_.untouched_bytes != 0 || has_untouched_in_flight());
  }

  // What holders weigh of a process that no limit has stopped: what is resident, unless a limit is
  // set that counts what is requested, and the limit at which the kernel kills is not nearer.
  Weight weight_by_limits() const;

  // Looks at the pages of the session's process, which is alive and visible as `pid`, unless they
  // may not be read. Its holders then have weight_by_limits(). Cost: as of
  // common/residency/residency.h, 1 s at most.
  void look_at_pages(pid_t pid);

  // The same, but enters the look in this copy of the session, so that a bundle that is written
  // from it has it. Does nothing if this is no copy, or of an older format.
  void enter_look(pid_t pid);
  // The same for a service, which may not wait for a process that itself waits for memory: without
  // a look if there is none in time.
  void enter_look_within(pid_t pid, std::chrono::milliseconds most);

  // Fills in oldest_ns of rows that holders() returned. Cost: reads every live block.
  void add_ages(std::vector<HolderFigures>& rows) const;

  // Header::command_line, split into arguments.
  std::vector<std::string> arguments() const;
  std::string text(session::StringId id) const { return std::string{view_.string(id)}; }
  std::uint64_t event_count() const;  // all events recorded with a stack, also overwritten ones
  Mode mode_now() const;
  bool estimated() const { return mode_now() == Mode::sampled; }

  // The time of the last tick, failure or mark (session clock).
  std::uint64_t end_ns() const;

  // Converts a time of the session clock to nanoseconds since 1970.
  std::uint64_t realtime_of(std::uint64_t monotonic_ns) const;

  // High-water mark of the spaces that add up: the maximum of all points of the time line, of the
  // peak of each space, and of now.
  std::uint64_t peak_bytes() const;
  std::uint64_t peak_bytes(Space space) const;
  // Live figures are sums over threads that may run while they are read; clamped at zero.
  SpaceTotals totals(Space space) const;
  std::uint64_t held_bytes() const;  // live in all spaces that add up
  std::uint64_t host_bytes() const;  // in those of them that are host memory
  // The same as the holders weigh: without what was untouched, with Weight::resident.
  std::uint64_t weighed_bytes() const;

 private:
  static std::uint64_t most_look_bytes();  // that an entered look needs behind the session
  bool may_enter_look() const;
  void enter(std::unique_ptr<residency::Look> look);
  void set_residency(const session::Residency&, std::vector<session::ResidencyRow>);
  std::uint64_t credit(std::uint64_t bytes);
  std::uint64_t credit_once_touched(std::uint64_t bytes);
  bool credit_growers(const session::ResidencyRow& reserving, std::uint64_t bytes);
  session::ResidencyRow& latest_grower(session::ResidencyRow& reserving);
  using HolderBytes = std::unordered_map<std::uint32_t, std::uint64_t>;
  HolderBytes resident_holders();
  void debit(std::uint64_t bytes, std::uint64_t resident_bytes);
  void debit_evenly(std::uint64_t bytes);
  void count_untouched(std::uint32_t holder, std::uint64_t bytes);
  std::uint32_t seconds_of_look() const;
  bool has_untouched_in_flight() const;
  void sort_rows();
  // Of small blocks samples say how they are divided among holders, and the exact total how much
  // they are together.
  void scale_estimates(std::vector<HolderFigures>& rows) const;
  void add_in_flight(std::vector<HolderFigures>& rows) const;
  std::uint64_t resident_of(std::uint32_t holder, std::uint64_t live_bytes) const;
  void add_residency(std::vector<HolderFigures>& rows) const;
  void open_view(std::uint64_t bytes);  // throws Error if bytes_ is not a session

  std::filesystem::path path_;
  uid_t owner_;
  std::shared_ptr<const std::byte> bytes_;
  std::byte* copy_ = nullptr;  // bytes_, if they are ours to change; zeroed memory follows them
  session::View view_;
  ResidencyTotals residency_;  // the latest look
  std::uint64_t unexplained_bytes_ = 0;
  std::vector<session::ResidencyRow> residency_rows_;  // by holder
  Weight weight_ = Weight::requested;
  std::vector<RequestInFlight> in_flight_;
};

}  // namespace oomrec::tools::recording
