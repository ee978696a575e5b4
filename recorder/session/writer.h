// Writes a session: the shared-memory file that outlives its process.
//
// Promise: after create() nothing here makes a system call unless a comment says so, and a full
// table, a full disk or a tight RLIMIT_AS costs entries (counted), never the program. Every page is
// populated before it is first touched (MADV_POPULATE_WRITE), so a full disk cannot raise SIGBUS.
// Prohibition: no descriptor stays open, no thread, no file in the working directory.
//
// One session per process image. The object is constinit and trivially destructible: hooks may run
// before constructors and after destructors.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/session/view.h"
#include "common/system/files.h"
#include "common/system/hook_scope.h"
#include "recorder/session/arena.h"
#include "recorder/session/reuse.h"
#include "recorder/session/table.h"

namespace oomrec::session {

// The settings of a session, from the options (common/options/options.h).
struct Settings {
  Mode mode = Mode::sampled;
  std::uint64_t budget_bytes = 0;  // populated bytes; 0: the mode's default (16 or 256 MiB)
  std::uint64_t interval_bytes = 512 * 1024;
  std::uint64_t large_bytes = 64 * 1024;
  std::uint64_t soft_limit_bytes = 0;
  std::uint64_t limit_reserve_bytes = 0;
  const char* session_directory = nullptr;  // as the user named it
  const char* dump_directory = nullptr;     // absolute, and named by the user; else nullptr
  bool only_names_of_options = false;       // of the command line, no values
};

// A lane has a ThreadState in the recorder. That many threads at a time are recorded; the memory of
// others is only counted.
inline constexpr u32 kMostLanes = 4096;  // lane 0 included
inline constexpr u32 kMostThreadEntries = 0xffff;

class Session {
 public:
  // Chooses the directory (common/session/directories.h), creates the file, maps it, fills in the
  // header, and removes the oldest dead sessions there (beyond 20 files or 256 MiB). Falls back to
  // private memory if no file can be created. False: that failed, too; off_reason() says why. Opens
  // and closes descriptors (close-on-exec, never 0–2). Called in the constructor, or within a
  // forked child's first MiB, so it keeps the promise of InHook. One thread at a time.
  bool create(InHook, const Settings&) noexcept;

  bool active() const noexcept { return active_; }

  // In the child of a fork: unmaps the parent's session, so that nothing is written to it, and
  // resets this object. munmap; if libc does not know of the fork (a raw clone), a private page of
  // zeros replaces the header's first.
  void detach(InHook) noexcept;

  // Unmaps a session that has ended in this process, and resets this object, for another create().
  // No thread may be using it. munmap.
  void close(InHook) noexcept;

  // Marks the end of the process image, or undoes that (State::running after a failed exec). Do not
  // call it in a vfork child.
  void mark(InHook, State state, std::int32_t status) noexcept;

  // Removes the file of a session that is no longer needed (a clean exit without failures). unlink.
  void remove_file(InHook) noexcept;

  // Called by the tick: locks the alive mutex again if the thread that held it has ended.
  void keep_alive(InHook) noexcept;

  Header& header() noexcept { return *header_; }
  Node node(std::uint32_t number) noexcept {
    const u64 word = word_of(nodes.at(number)).load(std::memory_order_acquire);
    const auto entry = std::bit_cast<NodeEntry>(word);
    return {entry.parent, 0, word_of(frames.at(entry.frame)).load(std::memory_order_relaxed)};
  }
  View view() noexcept;                                // of the writer's own memory
  const char* path() const noexcept { return path_; }  // of the file, absolute; "" when private
  const char* off_reason() const noexcept { return off_reason_; }  // why create() returned false

  // Whether the user's directory for sessions was created.
  bool made_directory() const noexcept { return made_directory_; }
  // The directory that the session should be in: our own in the one that the user named, else in
  // the first of ours. The errno if it cannot be used.
  const char* preferred_directory() const noexcept { return preferred_; }
  int directory_error() const noexcept { return directory_error_; }

  // Whether there may be more nodes and holders than before. The last part of the budget is for
  // live blocks, of which there may be more later; stacks can be forgotten, unless there are few.
  bool may_add_stacks() const noexcept {
    const u64 stacks =
        nodes.size() * sizeof(NodeEntry) + holders.size() * (sizeof(HolderEntry) + sizeof(Holder));
    return arena.populated_bytes() <= arena.budget_bytes() / 12 * 11 ||
           stacks < arena.budget_bytes() / 4;
  }

  // Copies `text` into the table of strings, at most kMaxStringBytes of it. 0: the table is full,
  // or the text is empty. No deduplication: callers intern.
  StringId add_string(InHook, std::string_view text) noexcept;

  // A text whose memory is given back once nothing refers to it, for one of about the same length.
  StringId take_text(InHook, std::string_view text) noexcept;
  void give_text(InHook, StringId) noexcept;

  // An entry for a thread that begins; its number fits a stamp of a ring. The latest threads have
  // one: that of an ended thread is used again, the oldest first. 0: there is no memory.
  std::uint32_t take_thread_entry(InHook, const Thread&) noexcept;
  // The entry stays: a failure names the thread.
  void keep_thread_entry(std::uint32_t entry) noexcept;

  // A lane for thread `tid`: one without an owner or with a dead one, or a new one with a ring. 0:
  // none is left. Probes a few owners with tgkill.
  std::uint32_t acquire_lane(InHook, std::int32_t tid, std::uint32_t thread) noexcept;
  void release_lane(InHook, std::uint32_t lane) noexcept;
  Slot* ring(std::uint32_t lane) noexcept;  // of Lane::ring_slots; nullptr when the lane has none
  HolderSum* sums(std::uint32_t lane) noexcept;  // of Lane::sums; nullptr when the lane has none
  Atomic<u32>* temporaries(std::uint32_t lane) noexcept;  // present if the sums are

  Arena arena;
  Table<NodeEntry> nodes;
  Table<Frame> frames;
  Table<HolderEntry> holders;
  Table<Holder> full_holders;
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
  Table<SentSignal> sent_signals;
  Table<SidePage> side_pages;
  Table<ResidencyPage> residency;

  // Opened by the first look at the process' pages. False: no space.
  bool open_residency(InHook) noexcept;

  // Opened by a program's first driver call. False: no space.
  bool open_devices(InHook) noexcept;
  Table<Device> devices;
  Table<DeviceBlock> device_blocks;
  Table<DevicePoint> device_points;
  Table<Tally> api_tallies;

 private:
  bool open_in_directory(InHook, const Settings&, std::uint64_t budget_bytes) noexcept;
  int open_file(InHook, const char* directory, const system::File&,
                std::uint64_t budget_bytes) noexcept;  // 0, or an errno
  bool open_arena(InHook, int descriptor, std::uint64_t file_bytes,
                  std::uint64_t budget_bytes) noexcept;
  bool open_tables(InHook) noexcept;
  void describe_process(InHook, const Settings&) noexcept;
  bool add_memory(InHook, std::uint32_t first, std::uint32_t count, std::uint32_t slots,
                  std::uint32_t sums) noexcept;
  std::uint32_t add_lanes(InHook, std::int32_t tid) noexcept;
  // The lane that `tid` owns now; 0: none was found.
  std::uint32_t take_free_lane(std::int32_t tid) noexcept;
  std::uint32_t take_lane_of_ended_thread(std::int32_t tid) noexcept;
  bool take_lane(std::uint32_t number, std::int32_t owner, std::int32_t tid) noexcept;
  std::uint32_t take_entry_of_ended_thread() noexcept;

  std::byte* text_at(StringId) noexcept;

  // Copies `text` into new memory of `capacity` bytes, with `word` before it.
  StringId add_text(InHook, std::string_view text, u32 capacity, u32 word) noexcept;
  // Copies `text` into free memory of a class in [first, last]. 0: there is none.
  StringId take_free_text(std::string_view text, u32 first_class, u32 last_class) noexcept;

  Header* header_ = nullptr;
  bool active_ = false;
  Mode mode_ = Mode::sampled;
  std::int32_t pid_ = 0;
  std::uint64_t start_ticks_ = 0;  // of the process
  const char* off_reason_ = "";
  bool made_directory_ = false;
  int directory_error_ = 0;
  char preferred_[256] = {};
  // By the size of their memory (text_class()), the first free text of each; its first bytes are
  // the id of the next.
  static constexpr u32 kTextClasses = 64;
  TableBase strings_;
  StringId free_texts_[kTextClasses] = {};     // under the lock of strings_
  std::atomic<std::uint32_t> probed_lane_{0};  // probes for a dead owner so far
  std::atomic<std::uint32_t> free_lanes_{0};   // without an owner
  std::atomic<std::uint32_t> free_lane_{0};    // where to begin the search for one, from 0
  std::atomic<std::uint32_t> next_thread_{0};  // entries used again so far, from 0
  std::atomic<u64> kept_threads_[(kMostThreadEntries + 1) / 64] = {};
  char path_[1024] = {};
};

extern constinit Session g_session;

}  // namespace oomrec::session
