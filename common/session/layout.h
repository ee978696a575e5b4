// The session file, byte for byte: this header, with entries.h, device_layout.h and evidence.h,
// which it includes. Only these define where a field is.
//
// A file consists of a header (one fixed struct at offset 0) and *tables* listed in the header's
// directory. A table is append-only. Its entries are in chunks, which double in size up to a limit:
// a table starts with one page and an entry never moves. A chunk never crosses a segment
// (kSegmentBytes of the file), because the writer maps no more at a time (pieces.h). A bundle's
// recording.oomrec is a copy of this file in the same format.
//
// Little-endian. Entry 0 of every table means "none" and is all zero. Times are CLOCK_MONOTONIC
// nanoseconds, unless the name says `realtime`; `_ms` and `_s` count from
// Header::start_monotonic_ns. Never move, widen or reuse a field: append it to its struct and raise
// kVersion. A reader takes entry sizes from the file, and the header has space to grow: what an
// older writer lacks reads as zero.
//
// The writer may be killed at any instruction. An entry is complete before the table's `committed`
// includes it (release); later changes are one aligned word at a time. Atomics here are relaxed
// unless a comment says otherwise.
#pragma once

#include <cstddef>
#include <type_traits>

#include "common/session/device_layout.h"
#include "common/session/entries.h"
#include "common/session/evidence.h"
#include "common/session/types.h"

namespace oomrec::session {

inline constexpr u64 kMagic = 0x014345524d4f4f1aULL;  // 1A "OOMREC" 01
inline constexpr u32 kVersion = 12;
inline constexpr u64 kSegmentBytes = u64{16} << 20;
inline constexpr u32 kMaxSegments = 64;
inline constexpr u64 kMostBytes = kMaxSegments * kSegmentBytes;
inline constexpr u64 kUnitBytes = 4096;     // of a part of the file, whatever the kernel's pages
inline constexpr u64 kHeaderBytes = 20480;  // reserved for the header: zero after its last field
inline constexpr u32 kMaxStringBytes = 64 * 1024;  // longer ones are cut
// The first word of a string: its bytes, and above them what only the writer needs.
inline constexpr u32 kStringLengthBits = 24;
inline constexpr u32 kMaxRingSlots = 1u << 20;
inline constexpr u32 kMaxSums = 1u << 16;                // of one lane
inline constexpr u32 kMaxChunks = 80;                    // of one table
inline constexpr u64 kFirstChunkBytes = 4096;            // chunk k is kFirstChunkBytes << k …
inline constexpr u64 kLargestChunkBytes = u64{4} << 20;  // … and no larger than this
inline constexpr u32 kMaxEntryBytes = 4096;              // so that each chunk holds at least one

enum class TableId : u32 {
  strings,  // entry_bytes 1
  nodes,
  holders,
  live_blocks,
  live_ranges,
  threads,
  lanes,
  failures,
  modules,
  codes,
  points,
  checkpoints,
  marks,
  side_pages,
  devices,
  device_blocks,
  device_points,
  api_tallies,  // Tally of Api i at entry i + 1, for functions without one in a lane
  checkpoint_rows,
  sent_signals,
  full_holders,  // since version 10: those whose figures do not fit into `holders`
  frames,        // since version 10
  residency,     // since version 12
  count_
};
inline constexpr u32 kTableSlots = 24;

// Entry i of a table is in chunk k at byte (i − first(k)) × entry_bytes; chunk k holds
// chunk_bytes(k) / entry_bytes entries (rounded down).
struct TableDirectory {
  u32 entry_bytes;
  u32 reserved;
  Atomic<u64> committed;  // entries that may be read (release; pairs with the reader's acquire)
  Atomic<u64> chunk_offsets[kMaxChunks];  // in the file; 0: absent. Stored before `committed`.
};
static_assert(sizeof(TableDirectory) == 16 + 8 * kMaxChunks);

constexpr u64 chunk_bytes(u32 chunk) noexcept {
  return chunk < 10 ? kFirstChunkBytes << chunk : kLargestChunkBytes;
}
static_assert(chunk_bytes(10) == kFirstChunkBytes << 10);

struct SpaceTotals {
  // Approximate, because each thread publishes its share about every 64 KiB. Limits are checked
  // against it. The exact figure is the sum over the lanes.
  Atomic<i64> published_live_bytes;
  Atomic<u64> peak_bytes;      // highest published value
  Atomic<u64> reserved_bytes;  // space map: address space reserved, not counted
  Atomic<u32> peak_epoch;      // raised when live exceeds the last step by 1 %
  u32 reserved;
  Atomic<u64> peak_step_bytes;

  // The published value, never below zero: a racing free may become visible before its allocation.
  u64 live_bytes() const noexcept {
    const i64 live = published_live_bytes.load(std::memory_order_relaxed);
    return live < 0 ? 0 : static_cast<u64>(live);
  }
};
static_assert(sizeof(SpaceTotals) == 40);

enum class State : u32 {
  starting,  // not yet a valid session
  running,
  exited,     // ended by exit, _exit or quick_exit: exit_status is valid
  replaced,   // an exec is under way or has succeeded; after a failed one, `running` again
  abandoned,  // the recorder switched itself off
};

// Where Python's objects come from. own_heap: a free-threaded interpreter's (mimalloc), of which
// the resident part counts.
enum class ObjectSource : u32 { pymalloc, malloc, own_heap };

// Which objects of the pool, or of the interpreter's own heap, have holders (space `python`).
enum class PoolObjects : u32 { none, sampled, all };

struct Python {
  u32 version_hex;      // PY_VERSION_HEX, 0: no interpreter seen
  StringId status;      // why there are no Python stacks; 0: there are some
  ObjectSource source;  // malloc: by PYTHONMALLOC=malloc, every object is a block
  PoolObjects objects;  // none: only the pool itself has a holder
};

// For a process of a distributed job (torchrun, mpirun, srun). The job may be known without a rank.
struct Rank {
  u32 known;  // 1: the three numbers are valid
  u32 rank;
  u32 local_rank;
  u32 world_size;
  StringId job;
  // Of any process, from common/options/label_variables.h: one string, "key=value" after
  // "key=value" with NULs between them, in order of precedence. Here and not in environment.json,
  // which has no variables of a process that was killed. 0: none, as by every older release.
  StringId process_labels;
};
static_assert(sizeof(Rank) == 24 && offsetof(Rank, job) == 16);

struct Header {
  u64 magic;
  u32 version;
  u32 header_bytes;         // kHeaderBytes
  u64 file_bytes;           // size of the file, sparse
  Atomic<u64> used_bytes;   // end of the last chunk or ring
  Atomic<u32> state;        // State
  Atomic<i32> exit_status;  // of State::exited

  // Tells whether the process is alive: a robust, process-shared mutex that the kernel marks at
  // death and at exec. Its first word is the futex: FUTEX_OWNER_DIED set, or 0, means dead.
  alignas(8) u8 alive_mutex[64];

  i32 pid;
  i32 parent_pid;
  u64 start_ticks;  // /proc/PID/stat, field 22
  u8 boot_id[16];
  u64 start_realtime_ns;
  u64 start_monotonic_ns;
  char host[64];
  char oomrec_version[16];
  StringId command_line;  // argv, NUL-separated, secrets masked
  StringId executable;
  StringId working_directory;
  StringId dump_directory;  // absolute
  StringId off_reason;      // why nothing was recorded, in a bundle of `oomrec run`; 0: it was
  StringId heap_note;       // "heap not observed: …", 0: it is observed

  u8 mode;  // requested Mode
  u8 padding_[3];
  Atomic<u32> mode_now;  // Mode in force: exact falls back to sampled
  u64 interval_bytes;    // mean of the sampling interval
  u64 large_bytes;       // minimum size of blocks that are recorded exactly

  Atomic<u64> soft_limit_bytes;  // 0: none
  u64 ram_bytes;
  u64 swap_bytes;

  Atomic<u64> dropped_events;  // tables were full
  Atomic<u64> truncated_stacks;
  Atomic<u64> failures_total;  // failures without probes
  Atomic<u64> probes_total;
  Atomic<u64> bundles_written;
  Atomic<u64> last_tick_ns;
  Atomic<u64> module_generation;
  Atomic<u32> thinned;  // ticks between points of the time line (power of two)
  u32 pid_namespace;    // of `pid`: inode of /proc/self/ns/pid; 0: unknown

  Python python;
  SpaceTotals spaces[kLaneSpaces];
  TableDirectory tables[kTableSlots];

  u64 limit_as_bytes;      // RLIMIT_AS as set by --limit-as; 0: not set
  u64 limit_as_own_bytes;  // the part of it added for the recorder's own memory

  StringId cgroup;       // directory of its own memory cgroup, as the process sees it
  StringId cgroup_path;  // its name in /proc/self/cgroup and in the kernel's log
  Health health;
  Crash crash;
  Death death;
  Atomic<u32> acted;  // 1: the command of --on-oom-exec has run
  u32 simulated;      // 1: `oomrec simulate` made this process fail
  // The process that writes the latest bundle. It shares the memory, so the kernel's OOM killer may
  // name either.
  Atomic<i32> helper_pid;
  Atomic<u32> ended_count;           // of all children; child n is at n % kEndedChildren
  EndedChild ended[kEndedChildren];  // the latest
  ChildDeath child;
  SharedMemory shared;
  Driver drivers[kVendors];
  Atomic<u32> near_device;    // entry in `devices`: subject of the near_limit bundle being written
  Atomic<u32> dropped_marks;  // marks that are not in the table any more
  Rank rank;
  Atomic<u32> notifications;  // a futex: counts events that oomrec_wait() waits for
  StringId process_tree;      // what `oomrec run` calls the program and its descendants; 0: no name
  CrashLink crash_link;       // since version 7, as those below
  EndLevels end_levels;
  CgroupAccount account;
  Stalls stalls;  // that the process itself measured at its last thorough check
  RuntimeLimit runtime_limit;
  Atomic<u64> limit_reserve_bytes;       // since version 8: beyond the soft limit, after a refusal
  Atomic<u64> limit_reserve_used_bytes;  // the most of it that was in use
  // Since version 9: what Python's collector tracked at `oomrec attach --objects`, as
  // tools/recording/reading/object_counts.h reads it; 0: not counted.
  Atomic<StringId> preexisting_objects;
  u32 page_bytes;                // of the kernel; 0: 4096 (recordings of older releases)
  Atomic<u64> forgotten_stacks;  // since version 11: used again for others
  Atomic<u32> latest_look;       // since version 12: first entry in `residency` (release); 0: none
  StringId allocator;  // since version 12: file whose malloc() serves the program; 0: not observed
  // Since version 12: the name by which it was started, where that is another than the executable's
  // (a link to it); 0: none. Read it with program_of().
  StringId program;
  u32 reserved;
  GrowthSample growth[kGrowthSamples];  // since version 12: since the latest look
  // Since version 12: when `oomrec ended` entered in `end_levels` who ends the process, and why
  // (CLOCK_REALTIME); 0: never.
  Atomic<u64> told_realtime_ns;
};
// The path or name of the program.
inline StringId program_of(const Header& header) noexcept {
  return header.program != 0 ? header.program : header.executable;
}
static_assert(offsetof(Header, used_bytes) == 24 && offsetof(Header, alive_mutex) == 40 &&
              offsetof(Header, pid) == 104 && offsetof(Header, boot_id) == 120 &&
              offsetof(Header, host) == 152 && offsetof(Header, command_line) == 232 &&
              offsetof(Header, mode) == 256 && offsetof(Header, interval_bytes) == 264 &&
              offsetof(Header, soft_limit_bytes) == 280 &&
              offsetof(Header, dropped_events) == 304 && offsetof(Header, python) == 368 &&
              offsetof(Header, spaces) == 384 && offsetof(Header, tables) == 864);
static_assert(
    offsetof(Header, limit_as_bytes) == 864 + kTableSlots * sizeof(TableDirectory) &&
    offsetof(Header, limit_as_own_bytes) == offsetof(Header, limit_as_bytes) + 8 &&
    offsetof(Header, cgroup) == offsetof(Header, limit_as_own_bytes) + 8 &&
    offsetof(Header, health) == offsetof(Header, cgroup) + 8 &&
    offsetof(Header, crash) == offsetof(Header, health) + sizeof(Health) &&
    offsetof(Header, death) == offsetof(Header, crash) + sizeof(Crash) &&
    offsetof(Header, acted) == offsetof(Header, death) + sizeof(Death) &&
    offsetof(Header, ended) == offsetof(Header, acted) + 16 &&
    offsetof(Header, child) == offsetof(Header, ended) + 16 * kEndedChildren &&
    offsetof(Header, shared) == offsetof(Header, child) + sizeof(ChildDeath) &&
    offsetof(Header, drivers) == offsetof(Header, shared) + sizeof(SharedMemory) &&
    offsetof(Header, near_device) == offsetof(Header, drivers) + sizeof(Driver) * kVendors &&
    offsetof(Header, rank) == offsetof(Header, near_device) + 8 &&
    offsetof(Header, notifications) == offsetof(Header, rank) + sizeof(Rank) &&
    offsetof(Header, crash_link) == offsetof(Header, notifications) + 8 &&
    offsetof(Header, stalls) == offsetof(Header, account) + sizeof(CgroupAccount) &&
    offsetof(Header, runtime_limit) == offsetof(Header, stalls) + sizeof(Stalls) &&
    offsetof(Header, limit_reserve_bytes) ==
        offsetof(Header, runtime_limit) + sizeof(RuntimeLimit) &&
    offsetof(Header, preexisting_objects) == offsetof(Header, limit_reserve_used_bytes) + 8 &&
    offsetof(Header, forgotten_stacks) == offsetof(Header, preexisting_objects) + 8 &&
    offsetof(Header, growth) == offsetof(Header, forgotten_stacks) + 24 &&
    offsetof(Header, told_realtime_ns) == offsetof(Header, growth) + 8 * kGrowthSamples &&
    sizeof(Header) == offsetof(Header, told_realtime_ns) + 8 && sizeof(Header) <= kHeaderBytes);
static_assert(std::is_standard_layout_v<Header> && std::is_trivially_destructible_v<Header>);
static_assert(Atomic<u64>::is_always_lock_free, "a lock would die with its owner");

inline u64 page_bytes_of(const Header& header) noexcept {
  return header.page_bytes != 0 ? header.page_bytes : 4096;
}

// The number of the latest peak step that concerns the holders of a space, which is below
// kLaneSpaces.
inline u32 peak_epoch_of(const Header& header, u8 of_space) noexcept {
  const Space space = peak_space_of(static_cast<Space>(of_space));
  return header.spaces[static_cast<std::size_t>(space)].peak_epoch.load(std::memory_order_relaxed);
}
inline u32 peak_epoch_of(const Header& header, const Holder& holder) noexcept {
  return peak_epoch_of(header, holder.space);
}

// The reserve of --limit as a bundle reports it.
struct LimitReserve {
  bool has_limit = false;
  u64 bytes = 0;
  u64 used_bytes = 0;  // the most
};
inline LimitReserve limit_reserve_of(const Header& header) noexcept {
  return {header.soft_limit_bytes != 0, header.limit_reserve_bytes,
          header.limit_reserve_used_bytes};
}

}  // namespace oomrec::session
