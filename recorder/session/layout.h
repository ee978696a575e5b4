// The session file, byte for byte; no other file says where a field is.
//
// A file is a header (one fixed struct at offset 0) and *tables* that the header's directory lists.
// A table is append-only; its entries live in chunks whose sizes double up to a bound, so that it
// starts at one page and an entry never moves. A chunk never crosses a segment (kSegmentBytes of
// the file), because the writer maps segment by segment. A bundle's recording.oomrec is a copy of
// this file; reader and copy are the same format.
//
// Little-endian. Entry 0 of every table means "none" and is all zero. Times are CLOCK_MONOTONIC
// nanoseconds, unless the name says `realtime`; `_ms` and `_s` count from
// Header::start_monotonic_ns. A field is never moved, widened or reused: append it to its struct
// and raise kVersion. A reader takes entry sizes from the file, and the header has room to grow:
// what an older writer lacks reads as zero.
//
// The writer may be killed at any instruction: an entry is complete before the table's `committed`
// includes it (release), and what changes later is one aligned word at a time.
// Atomics here are relaxed unless a comment says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "recorder/vocabulary.h"

namespace oomrec::session {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
template <class T>
using Atomic = std::atomic<T>;

inline constexpr u64 kMagic = 0x014345524d4f4f1aULL;  // 1A "OOMREC" 01
inline constexpr u32 kVersion = 3;
inline constexpr u64 kSegmentBytes = u64{16} << 20;
inline constexpr u32 kMaxSegments = 64;
inline constexpr u64 kPageBytes = 4096;
inline constexpr u64 kHeaderBytes = 20480;  // room for the header: zero beyond its last field
inline constexpr u32 kMaxStringBytes = 64 * 1024;  // longer ones are cut
inline constexpr u32 kMaxRingSlots = 1u << 20;
inline constexpr u32 kMaxSums = 1u << 16;                // of one lane
inline constexpr u32 kMaxChunks = 80;                    // of one table
inline constexpr u64 kFirstChunkBytes = 4096;            // chunk k is kFirstChunkBytes << k …
inline constexpr u64 kLargestChunkBytes = u64{4} << 20;  // … and no larger than this
inline constexpr u32 kMaxEntryBytes = 4096;              // so that each chunk holds one

// --- Strings and frames -------------------------------------------------------------------------

// A string's id is its byte offset in the table `strings`, where a u32 length and the bytes follow
// (4-byte aligned, inside one chunk; not NUL-terminated). Id 0: no string. Any bytes: paths are not
// always UTF-8, line tables never are.
using StringId = u32;

// One frame in one word: kind in bits 62–63.
//   native   61 guessed (found without CFI) · 60 exact (a signal frame: the pc is the instruction
//            itself, else a return address) · 40–55 module id · 0–39 offset from the module's base;
//            module 0: the offset is the low 40 bits of an address nobody knows
//   python   32–60 code id · 0–31 byte offset of the instruction in the bytecode
//   special  56–61 SpecialFrame · 0–31 argument (StringId or 0)
enum class FrameKind : u8 { native, python, special };
enum class SpecialFrame : u8 {
  none,
  thread_group,  // outermost node of every stack; argument: name of the group (StringId)
  truncated,     // frames further out were dropped: more than kMaxFrames, or unwinding lost its way
  inherited,     // what the parent of a fork held; argument 0
  context,       // the program's own label, further in than its group; argument: StringId
};
inline constexpr u32 kMaxFrames = 512;

// An interned chain: walk `parent` to 0 to get the stack innermost first. The outermost node (whose
// parent is 0) is a special frame thread_group.
struct Node {
  u32 parent;
  u32 depth;  // 1 for an outermost node
  u64 frame;
};
static_assert(sizeof(Node) == 16 && offsetof(Node, depth) == 4 && offsetof(Node, frame) == 8);

// --- Holders and live allocations ---------------------------------------------------------------

// A stack in one space with what it holds. In sampled mode small blocks count with their weight, so
// the figures are unbiased estimates; `flags` says so. Bytes are bytes asked for.
struct Holder {
  u32 node;
  u8 space;  // Space
  u8 flags;  // kHolderEstimated
  u16 api;   // Api of its first allocation
  Atomic<u64> live_bytes;
  Atomic<u64> live_count;
  Atomic<u64> total_bytes;  // ever allocated
  Atomic<u64> total_count;
  // Live at the last peak step of the space: valid when peak_epoch equals the space's; otherwise
  // the holder has not changed since that step and live_* is its value at the peak.
  Atomic<u64> peak_bytes;
  Atomic<u64> peak_count;
  Atomic<u32> peak_epoch;
  Atomic<u32> temporary_count;  // freed before the thread's next allocation (reserved; 0 in v1)
};
inline constexpr u8 kHolderEstimated = 1;  // one of its blocks was sampled, so others were not
static_assert(sizeof(Holder) == 64 && offsetof(Holder, live_bytes) == 8 &&
              offsetof(Holder, total_bytes) == 24 && offsetof(Holder, peak_bytes) == 40 &&
              offsetof(Holder, peak_epoch) == 56);

// What one lane did to one holder of the heap and has not told it yet: a reader adds it to the
// holder's figures. In exact mode most events change nothing that another thread writes, because
// of these. A lane's sums are an array, the place is the node's low bits; a place that another node
// needs is settled first. Changed by the lane's owner only.
struct HolderSum {
  Atomic<u32> node;
  Atomic<u32> holder;  // 0: the place is free, or being settled
  Atomic<u64> allocated_bytes;
  Atomic<u64> freed_bytes;
  Atomic<u64> counts;  // blocks allocated in the high half, freed in the low

  u64 allocated_count() const noexcept { return counts >> 32; }
  u64 live_bytes() const noexcept { return allocated_bytes - freed_bytes; }  // wraps below zero
  u64 live_count() const noexcept { return allocated_count() - (counts & 0xffff'ffff); }
};
static_assert(sizeof(HolderSum) == 32 && offsetof(HolderSum, allocated_bytes) == 8 &&
              offsetof(HolderSum, counts) == 24);

// A live allocation that is in no side table. Slots are reused: address is stored last (release)
// and cleared first. Counts in its holder as `weight` blocks of `bytes` each.
struct LiveBlock {
  Atomic<u64> address;  // 0: free slot
  u64 bytes;            // as asked for
  u32 holder;
  u32 weight;    // 1 unless sampled
  u32 birth_s;   // since start
  u32 reserved;  // writer's own (free list)
};
static_assert(sizeof(LiveBlock) == 32 && offsetof(LiveBlock, holder) == 16);

// Live blocks of the heap that are small and recorded exactly stand in the *side table*: one word
// for every 2^shift bytes of address space, at most one block in each (small_block.h says what is
// in a word). A page of it covers kSideSpanBytes of addresses.
struct SidePage {
  u64 start;  // address
  u32 page;   // its words begin at this page (4096 bytes) of the file
  u32 shift;
};
inline constexpr u64 kSideSpanBytes = 64 * 1024;
inline constexpr u32 kSmallestSideShift = 4, kLargestSideShift = 5;
static_assert(sizeof(SidePage) == 16);

// A live address range of space `map`. Ranges do not overlap; slots are reused like LiveBlock's.
struct LiveRange {
  Atomic<u64> start;  // 0: free slot
  u64 bytes;
  u32 holder;
  u32 birth_s;
  u32 kind;  // RangeKind
  u32 reserved;
};
// Only `counted` ranges are in the space's live bytes, in holders and against the limit.
enum class RangeKind : u32 {
  none,
  counted,      // writable, anonymous (private or shared)
  reservation,  // PROT_NONE or MAP_NORESERVE: SpaceTotals::reserved_bytes
  other,        // files, read-only: known so that a later mprotect or munmap is understood
};
static_assert(sizeof(LiveRange) == 32 && offsetof(LiveRange, holder) == 16);

// --- Threads, counters, events ------------------------------------------------------------------

struct Thread {
  i32 tid;
  u32 group;  // StringId: the name without digits
  char name[16];
  u64 first_seen_ns;
};
static_assert(sizeof(Thread) == 32);

// What one lane counted, for one space. Only its owner writes; a reader sums over all lanes.
// live = allocated - freed, in usable bytes: exact in both modes.
struct SpaceCounters {
  Atomic<u64> allocated_bytes;  // asked for
  Atomic<u64> allocated_count;
  Atomic<u64> freed_count;
  Atomic<u64> usable_allocated_bytes;
  Atomic<u64> usable_freed_bytes;
  Atomic<u64> failed_count;
};
static_assert(sizeof(SpaceCounters) == 48);

// Events by size (bucket b: 2^(b-1) ≤ bytes < 2^b; bucket 0: zero bytes) and by API. Weighted, so
// estimates in sampled mode.
struct Tally {
  Atomic<u64> count;
  Atomic<u64> bytes;
};
inline constexpr u32 kSizeBuckets = 48;
inline constexpr u32 kLaneApis = 48;
inline constexpr u32 kLaneSpaces = 12;
static_assert(kApiCount <= kLaneApis && kSpaceCount <= kLaneSpaces);

// What one thread at a time writes to: counters and the ring of its latest events. A new thread
// takes over the lane of a dead one and goes on counting where that one stopped.
struct Lane {
  Atomic<i32> owner_tid;  // 0: nobody's
  Atomic<u32> thread;     // entry in `threads`
  u64 ring_offset;        // in the file: ring_slots × Slot
  u32 ring_slots;         // a power of two; 0: no ring
  u32 reserved;
  Atomic<u64> ring_next;  // number of the next event of this lane
  SpaceCounters spaces[kLaneSpaces];
  Tally sizes[kSizeBuckets];
  Tally apis[kLaneApis];
  u64 sums_offset;         // in the file: sums × HolderSum
  u32 sums;                // a power of two; 0: none
  Atomic<u32> sums_epoch;  // SpaceTotals::peak_epoch of the heap during which they were made
  Atomic<u64> stamps;      // so many of the ring's events so far say only when the others were
};
static_assert(offsetof(Lane, ring_offset) == 8 && offsetof(Lane, ring_next) == 24 &&
              offsetof(Lane, spaces) == 32 &&
              offsetof(Lane, sums_offset) == 32 + 48 * 12 + 16 * 96 &&
              sizeof(Lane) == offsetof(Lane, sums_offset) + 24);

// One event, in two words: ring.h says what is in them.
struct Slot {
  Atomic<u64> first;
  Atomic<u64> second;
};
static_assert(sizeof(Slot) == 16);

// --- Failures -----------------------------------------------------------------------------------

// Limits on tasks, mappings and promised memory, as they stood at a refusal that one of them may
// explain. A limit is known where what it counts is not 0; kUnlimited: there is none.
struct CountedLimits {
  // After EAGAIN.
  u64 own_tasks;        // threads of this process
  u64 own_tasks_limit;  // RLIMIT_NPROC, of all the user's tasks; kUnlimited where it does not bind
  u64 cgroup_tasks;     // of the cgroup on the way to the root that has least room
  u64 cgroup_tasks_limit;  // pids.max
  u64 machine_tasks;
  u64 threads_max;
  u64 pid_max;  // numbers that there are for tasks
  // After ENOMEM.
  u64 committed_bytes;     // Committed_AS
  u64 commit_limit_bytes;  // kUnlimited unless vm.overcommit_memory is 2
  u64 mappings;
  u64 max_mappings;  // vm.max_map_count
};
static_assert(sizeof(CountedLimits) == 88 && offsetof(CountedLimits, committed_bytes) == 56);

// A refused request with everything the verdict needs. Written once; only the words marked change.
struct Failure {
  u64 time_ns;
  u64 realtime_ns;
  u64 bytes;  // asked for; saturated where the program's product overflows
  u32 node;
  u32 thread;
  u16 api;
  u8 space;
  u8 flags;  // kFailure…
  i32 error;
  // Evidence, read at the refusal. 0: not known; kUnlimited: no limit.
  u64 live_bytes;  // heap + map, as the soft limit counts
  u64 soft_limit_bytes;
  u64 vm_bytes;  // address space in use (statm)
  u64 rlimit_as_bytes;
  u64 data_bytes;
  u64 rlimit_data_bytes;
  u64 rss_bytes;
  u64 ram_bytes;
  u64 swap_bytes;
  u64 cgroup_used_bytes;  // working set
  u64 cgroup_limit_bytes;
  Atomic<u32> repeats;  // further refusals at the same stack
  Atomic<u32> bundle;   // number in the process of the bundle that tells it; 0: none yet
  Atomic<u64> last_ns;  // time of the latest repeat
  CountedLimits counted;
  StringId rule;  // of --fail, that refused it; 0: none did
  u32 reserved;
};
inline constexpr u64 kUnlimited = ~u64{0};
inline constexpr u8 kFailureProbe = 1;     // the caller has a plan B: no bundle
inline constexpr u8 kFailureRefused = 2;   // the recorder refused (soft limit), not the system
inline constexpr u8 kFailureInjected = 4;  // the user asked for this refusal (--fail)
static_assert(offsetof(Failure, node) == 24 && offsetof(Failure, error) == 36 &&
              offsetof(Failure, live_bytes) == 40 && offsetof(Failure, cgroup_limit_bytes) == 120 &&
              offsetof(Failure, repeats) == 128 && offsetof(Failure, counted) == 144 &&
              offsetof(Failure, rule) == 232 && sizeof(Failure) == 240);

// --- Names of things ----------------------------------------------------------------------------

struct Module {
  u64 base;  // load bias: address − base is the offset that symbol files use
  u64 start;
  u64 end;
  StringId path;
  u32 generation;  // of the module list when it was seen: equal addresses, other library
  u8 build_id[32];
  u32 build_id_bytes;  // 0: none
  u32 reserved;
};
static_assert(sizeof(Module) == 72);

// A Python code object. Lines are decoded by the tools from `line_table`, in the format of the
// interpreter's version (Header::python_version).
struct Code {
  StringId file;
  StringId name;  // qualified where the version has it
  u32 first_line;
  StringId line_table;
};
static_assert(sizeof(Code) == 16);

// --- Time line, checkpoints, marks --------------------------------------------------------------

// Not in order of time: when the table is full an entry is used again for a later point. Readers
// sort, and leave out one whose time is 0: it is being written.
struct Point {
  u64 time_ns;
  u64 rss_bytes;
  u64 live_bytes[kLaneSpaces];
};
static_assert(sizeof(Point) == 112);

// Reserved for later versions: the largest holders over time, and the program's own marks.
struct Checkpoint {
  u32 time_s;
  u32 holder;
  u64 live_bytes;
};
struct Mark {
  u64 time_ns;
  StringId text;
  u32 thread;
};
static_assert(sizeof(Checkpoint) == 16 && sizeof(Mark) == 16);

// --- Header -------------------------------------------------------------------------------------

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
  count_
};
inline constexpr u32 kTableSlots = 24;

// Entry i of a table is in chunk k at byte (i − first(k)) × entry_bytes; chunk k holds
// chunk_bytes(k) / entry_bytes entries (rounded down).
struct TableDirectory {
  u32 entry_bytes;
  u32 reserved;
  Atomic<u64> committed;  // entries that may be read (release; pairs with the reader's acquire)
  Atomic<u64> chunk_offsets[kMaxChunks];  // in the file; 0: not there. Stored before `committed`.
};
static_assert(sizeof(TableDirectory) == 16 + 8 * kMaxChunks);

constexpr u64 chunk_bytes(u32 chunk) noexcept {
  return chunk < 10 ? kFirstChunkBytes << chunk : kLargestChunkBytes;
}
static_assert(chunk_bytes(10) == kFirstChunkBytes << 10);

struct SpaceTotals {
  // Approximate (every thread publishes its share each 64 KiB or so): what limits are checked
  // against. Exact figures are the sum over the lanes.
  Atomic<i64> published_live_bytes;
  Atomic<u64> peak_bytes;      // highest published value
  Atomic<u64> reserved_bytes;  // space map: address space reserved, not counted
  Atomic<u32> peak_epoch;      // raised when live exceeds the last step by 1 %
  u32 reserved;
  Atomic<u64> peak_step_bytes;
};
static_assert(sizeof(SpaceTotals) == 40);

enum class State : u32 {
  starting,  // written so far is not yet a session
  running,
  exited,     // left by exit, _exit or quick_exit: exit_status holds
  replaced,   // exec succeeded, unless running is stored again
  abandoned,  // the recorder switched itself off: off_reason says why
};

struct Python {
  u32 version_hex;  // PY_VERSION_HEX, 0: no interpreter seen
  StringId status;  // why there are no Python stacks; 0: there are
  u32 raw_malloc;   // 1: PYTHONMALLOC=malloc, every object is a block
  u32 reserved;
};

// How the process fared when it last looked (recorder/limit/health.h): the evidence that is left of
// a kill. 0: not known; kUnlimited: no limit.
struct Health {
  Atomic<u64> time_ns;  // of the look; stored last
  Atomic<u64> rss_bytes;
  Atomic<u64> live_bytes;  // heap + map, as published
  Atomic<u64> swap_bytes;
  Atomic<u64> major_faults;
  Atomic<u64> cgroup_used_bytes;   // working set, of the cgroup with the lowest limit
  Atomic<u64> cgroup_limit_bytes;  // the lowest among its own cgroup and the ancestors
  Atomic<u64> available_bytes;     // MemAvailable
  Atomic<u64> cgroup_oom_kills;    // of its own cgroup: kills by the kernel so far
  Atomic<u64> system_oom_kills;    // of the machine (/proc/vmstat)
  Atomic<u32> pressure_some;  // PSI avg10 of memory, in 1/100 %: the cgroup's, or the machine's
  Atomic<u32> pressure_full;
  Atomic<u64> vm_bytes;  // address space
  Atomic<u64> rlimit_as_bytes;
};
static_assert(sizeof(Health) == 104 && offsetof(Health, pressure_some) == 80);

// A signal that ends the process, as its own handler saw it (recorder/crash.h), and the refusal
// that it may follow from. All zero: none came, or nobody saw it.
inline constexpr u32 kCrashFrames = 32;
struct Crash {
  Atomic<u32> signal;  // stored last
  i32 code;            // si_code
  u64 address;         // si_addr of SIGSEGV and SIGBUS
  u64 time_ns;
  u32 thread;           // entry in `threads`
  u32 failure;          // the same thread's last refusal, entry in `failures`; 0: none
  u64 failure_bytes;    // of that refusal's latest repeat
  u64 failure_time_ns;  // likewise
  u32 flags;            // kCrash…
  i32 sender_pid;       // who sent it; 0: the kernel, for a fault
  u32 frame_count;
  u32 reserved;
  u64 frames[kCrashFrames];  // of its stack, innermost first (native ones: words as in Node)
};
inline constexpr u32 kCrashGuardPage = 1;    // the address is beyond the end of the thread's stack
inline constexpr u32 kCrashTerminate = 2;    // std::terminate is on the stack
inline constexpr u32 kCrashServedSince = 4;  // the refused stack has been given memory since
inline constexpr u32 kCrashNew = 8;          // the refused call was made by operator new
inline constexpr u32 kCrashTold = 16;        // a bundle tells it
// A fault whose address the kernel has told: not one that was sent, nor a wild address (SI_KERNEL).
inline bool has_address(const Crash& crash) noexcept {
  constexpr i32 kFromKernel = 0x80;
  constexpr u32 kAbort = 6;
  return crash.code > 0 && crash.code != kFromKernel && crash.signal != kAbort;
}
static_assert(offsetof(Crash, frames) == 64 && sizeof(Crash) == 64 + 8 * kCrashFrames);

// What others know of the process' death: whoever waited for it, the kernel's log, counters. Zero
// in a session; filled in where a bundle is made of one, by tools/deaths.
struct Death {
  u64 realtime_ns;              // when it was noticed; 0: nobody looked, and all below is zero
  u32 flags;                    // kDeath…
  i32 wait_status;              // as wait() tells it; with kDeathWaited
  u64 cgroup_oom_kills_before;  // as the process saw it last
  u64 cgroup_oom_kills_after;
  u64 system_oom_kills_before;
  u64 system_oom_kills_after;
  i32 sender_pid;         // who signalled; 0: not known
  u32 kernel_line_kind;   // KernelLine
  char kernel_line[256];  // of the kernel's log, that fits this death; NUL-terminated
  u32 pressure_some;      // as in Health, when the death was noticed; with kDeathWaited
  u32 pressure_full;
};
inline constexpr u32 kDeathWaited = 1;
inline constexpr u32 kDeathAlone = 2;     // its cgroup held no other process
inline constexpr u32 kDeathAtOnce = 4;    // the counter rose within 1 s of the wait status
inline constexpr u32 kDeathOthers = 8;    // others of its group died then, too
inline constexpr u32 kDeathLogRead = 16;  // the kernel's log could be read back to the last tick
inline constexpr u32 kDeathParentCgroup = 32;   // its cgroup is gone: the counters are its parent's
inline constexpr u32 kDeathCgroupCounted = 64;  // the counters of the cgroup are known at both ends
inline constexpr u32 kDeathSystemCounted = 128;
inline constexpr u32 kDeathEarlierBoot = 256;  // the machine has been started again since
inline constexpr u32 kDeathSharedFull = 512;   // the file system in Header::shared was full
enum class KernelLine : u32 { none, cgroup, system };
static_assert(offsetof(Death, kernel_line) == 56 && sizeof(Death) == 320);

// A child that the process waited for and that a signal had ended.
struct EndedChild {
  i32 pid;
  i32 wait_status;
  Atomic<u64> time_ns;  // of the wait; stored last; 0: none
};
inline constexpr u32 kEndedChildren = 8;
static_assert(sizeof(EndedChild) == 16);

// A worker of the process that died of memory: what the worker's own bundle says of it. Filled in
// where the parent's bundle is made, as Death. Texts are NUL-terminated.
struct ChildDeath {
  i32 pid;  // 0: there is none
  i32 wait_status;
  u32 verdict;  // VerdictCode
  u32 reserved;
  u64 held_bytes;
  u64 largest_bytes;  // of its largest holder …
  char where[192];    // … "train.py:42 make_batch"
  char program[64];
  char bundle[64];    // name of its directory, beside the parent's; empty: there is none
  char summary[256];  // of its verdict
};
static_assert(offsetof(ChildDeath, where) == 32 && sizeof(ChildDeath) == 608);

// The latest writable shared mapping of a file in memory (tmpfs), and the room that there was for
// it: one that had too little stays. Too little room is a SIGBUS, when the mapping is written to.
struct SharedMemory {
  Atomic<u64> time_ns;  // stored last; 0: there was no such mapping
  u64 needed_bytes;     // of the mapping, that the file system had yet to find
  u64 free_bytes;
  u64 total_bytes;
  char path[128];  // of the file, cut; NUL-terminated

  bool too_small() const noexcept { return needed_bytes > free_bytes; }
};
static_assert(offsetof(SharedMemory, path) == 32 && sizeof(SharedMemory) == 160);

struct Header {
  u64 magic;
  u32 version;
  u32 header_bytes;         // kHeaderBytes
  u64 file_bytes;           // size of the file, sparse
  Atomic<u64> used_bytes;   // no chunk or ring lies beyond
  Atomic<u32> state;        // State
  Atomic<i32> exit_status;  // of State::exited

  // Alive or dead: a robust, process-shared mutex that the kernel marks at death and at exec. The
  // first word is its futex: FUTEX_OWNER_DIED set, or 0, means dead.
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
  StringId off_reason;
  StringId heap_note;  // "heap not observed: …", 0: it is observed

  u8 mode;  // Mode asked for
  u8 padding_[3];
  Atomic<u32> mode_now;  // Mode in force: exact falls back to sampled
  u64 interval_bytes;    // mean of the sampling interval
  u64 large_bytes;       // blocks from this size on are recorded exactly

  Atomic<u64> soft_limit_bytes;  // 0: none
  u64 ram_bytes;
  u64 swap_bytes;

  Atomic<u64> dropped_events;  // tables were full
  Atomic<u64> truncated_stacks;
  Atomic<u64> failures_total;  // refusals, probes excluded
  Atomic<u64> probes_total;
  Atomic<u64> bundles_written;
  Atomic<u64> last_tick_ns;
  Atomic<u64> module_generation;
  Atomic<u32> thinned;  // the time line's points are this many ticks apart (power of two)
  u32 pid_namespace;    // that `pid` counts in: inode of /proc/self/ns/pid; 0: not known

  Python python;
  SpaceTotals spaces[kLaneSpaces];
  TableDirectory tables[kTableSlots];

  u64 limit_as_bytes;      // RLIMIT_AS as --limit-as set it; 0: it did not
  u64 limit_as_own_bytes;  // of it, what was added for the recorder's own memory

  StringId cgroup;       // directory of its own memory cgroup, as the process sees it
  StringId cgroup_path;  // as /proc/self/cgroup names it: what the kernel's log says
  Health health;
  Crash crash;
  Death death;
  Atomic<u32> acted;  // 1: the command of --on-oom-exec has been run
  u32 simulated;      // 1: `oomrec simulate` made this process fail
  // Of the latest bundle's writer, which shares the memory: the kernel, killing for it, may name
  // either.
  Atomic<i32> helper_pid;
  Atomic<u32> ended_count;           // of all; child n is at n % kEndedChildren
  EndedChild ended[kEndedChildren];  // the latest
  ChildDeath child;
  SharedMemory shared;
};
static_assert(offsetof(Header, used_bytes) == 24 && offsetof(Header, alive_mutex) == 40 &&
              offsetof(Header, pid) == 104 && offsetof(Header, boot_id) == 120 &&
              offsetof(Header, host) == 152 && offsetof(Header, command_line) == 232 &&
              offsetof(Header, mode) == 256 && offsetof(Header, interval_bytes) == 264 &&
              offsetof(Header, soft_limit_bytes) == 280 &&
              offsetof(Header, dropped_events) == 304 && offsetof(Header, python) == 368 &&
              offsetof(Header, spaces) == 384 && offsetof(Header, tables) == 864);
static_assert(offsetof(Header, limit_as_bytes) == 864 + kTableSlots * sizeof(TableDirectory) &&
              offsetof(Header, limit_as_own_bytes) == offsetof(Header, limit_as_bytes) + 8 &&
              offsetof(Header, cgroup) == offsetof(Header, limit_as_own_bytes) + 8 &&
              offsetof(Header, health) == offsetof(Header, cgroup) + 8 &&
              offsetof(Header, crash) == offsetof(Header, health) + sizeof(Health) &&
              offsetof(Header, death) == offsetof(Header, crash) + sizeof(Crash) &&
              offsetof(Header, acted) == offsetof(Header, death) + sizeof(Death) &&
              offsetof(Header, ended) == offsetof(Header, acted) + 16 &&
              offsetof(Header, child) == offsetof(Header, ended) + 16 * kEndedChildren &&
              offsetof(Header, shared) == offsetof(Header, child) + sizeof(ChildDeath) &&
              sizeof(Header) == offsetof(Header, shared) + sizeof(SharedMemory) &&
              sizeof(Header) <= kHeaderBytes);
static_assert(std::is_standard_layout_v<Header> && std::is_trivially_destructible_v<Header>);
static_assert(Atomic<u64>::is_always_lock_free, "a lock would die with its owner");

}  // namespace oomrec::session
