// Writes a session: the shared-memory file that outlives its process.
//
// Promise: after create() nothing here makes a system call except where a comment says so, and a
// full table, a full disk or a tight RLIMIT_AS costs entries (counted), never the program. Every
// page is taken before it is first touched (MADV_POPULATE_WRITE), so a full disk cannot raise
// SIGBUS. Prohibition: no descriptor stays open, no thread, nothing in the working directory.
//
// One session per process image. The object is constinit and trivially destructible: hooks may run
// before constructors and after destructors.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/session/view.h"
#include "common/system/files.h"
#include "common/system/hook_scope.h"
#include "recorder/session/arena.h"
#include "recorder/session/table.h"

namespace oomrec::session {

// What a session is made with; from the options (common/options/options.h).
struct Settings {
  Mode mode = Mode::sampled;
  std::uint64_t budget_bytes = 0;  // populated bytes; 0: the mode's default (16 or 256 MiB)
  std::uint64_t interval_bytes = 512 * 1024;
  std::uint64_t large_bytes = 64 * 1024;
  std::uint64_t soft_limit_bytes = 0;
  const char* session_directory = nullptr;  // as the user named it
  const char* dump_directory = nullptr;     // absolute, and named by the user; else nullptr
};

class Session {
 public:
  // Chooses the directory (design.md §6), creates the file, maps, populates and fills the header,
  // enforces the budget of dead sessions there (20 files, 256 MiB). Falls back to private memory
  // when no file can be had. False: not even that; the reason is in off_reason(). Opens and closes
  // descriptors (close-on-exec, never 0–2); called in the constructor, or in a fork child's first
  // MiB, so it keeps the promise of InHook. One thread at a time.
  bool create(InHook, const Settings&) noexcept;

  bool active() const noexcept { return active_; }

  // The child of a fork: unmaps the parent's session, so that nothing is written to it, and leaves
  // this object as it was before create(). munmap, and where libc knows nothing of the fork (a raw
  // clone) a private page of zeroes in place of the header's first.
  void detach(InHook) noexcept;

  // Marks the end of the process image, or takes it back (State::running after a failed exec). The
  // caller has made sure that this is not a vfork child.
  void mark(InHook, State state, std::int32_t status) noexcept;

  // Removes the file of a session that nobody needs any more (a clean exit without refusals).
  // unlink.
  void remove_file(InHook) noexcept;

  // The tick's part: takes over the alive mutex when the thread that held it has ended.
  void keep_alive(InHook) noexcept;

  Header& header() noexcept { return *header_; }
  View view() noexcept;                                // of the writer's own memory
  const char* path() const noexcept { return path_; }  // of the file, absolute; "" when private
  const char* off_reason() const noexcept { return off_reason_; }  // why create() returned false

  // The directory that the user named for sessions: it was made; or why it was not taken, an errno.
  bool made_directory() const noexcept { return made_directory_; }
  int directory_error() const noexcept { return directory_error_; }

  // Copies `text` into the table of strings, at most kMaxStringBytes of it. 0 when full, and for an
  // empty text. No deduplication: callers intern.
  StringId add_string(InHook, std::string_view text) noexcept;

  // A lane for thread `tid`: one nobody owns, or whose owner is dead, or a new one with a ring.
  // 0: none to be had. Probes a few owners with tgkill.
  std::uint32_t acquire_lane(InHook, std::int32_t tid, std::uint32_t thread) noexcept;
  void release_lane(InHook, std::uint32_t lane) noexcept;
  Slot* ring(std::uint32_t lane) noexcept;  // of Lane::ring_slots; nullptr when the lane has none
  HolderSum* sums(std::uint32_t lane) noexcept;  // of Lane::sums; nullptr when the lane has none
  Atomic<u32>* temporaries(std::uint32_t lane) noexcept;  // there when sums are

  Arena arena;
  Table<Node> nodes;
  Table<Holder> holders;
  Table<LiveBlock> live_blocks;
  Table<LiveRange> live_ranges;
  Table<Thread> threads;
  Table<Lane> lanes;
  Table<Failure> failures;
  Table<Module> modules;
  Table<Code> codes;
  Table<Point> points;
  Table<Checkpoint> checkpoints;
  Table<CheckpointRow> checkpoint_rows;
  Table<Mark> marks;
  Table<SidePage> side_pages;

  // These from open_devices() on, which a program's first call of a driver makes. False: no room.
  bool open_devices(InHook) noexcept;
  Table<Device> devices;
  Table<DeviceBlock> device_blocks;
  Table<DevicePoint> device_points;
  Table<Tally> api_tallies;

 private:
  bool open_in_a_place(InHook, const Settings&, std::uint64_t budget_bytes) noexcept;
  int open_file(InHook, const char* directory, const system::File&,
                std::uint64_t budget_bytes) noexcept;  // 0, or an errno
  bool open_arena(InHook, int descriptor, std::uint64_t file_bytes,
                  std::uint64_t budget_bytes) noexcept;
  bool open_tables(InHook) noexcept;
  void describe_process(InHook, const Settings&) noexcept;
  bool add_ring(InHook, Lane& lane, std::uint32_t slots) noexcept;
  void add_sums(InHook, Lane& lane, std::uint32_t sums) noexcept;

  Header* header_ = nullptr;
  bool active_ = false;
  Mode mode_ = Mode::sampled;
  std::int32_t pid_ = 0;
  std::uint64_t start_ticks_ = 0;  // of the process
  const char* off_reason_ = "";
  bool made_directory_ = false;
  int directory_error_ = 0;
  TableBase strings_;
  std::atomic<std::uint32_t> probed_lane_{0};  // probes for a dead owner so far
  char path_[1024] = {};
};

extern constinit Session g_session;

}  // namespace oomrec::session
