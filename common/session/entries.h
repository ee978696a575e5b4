// What the tables of a session file hold, entry by entry: part of layout.h, which says how a file
// is made of them and what holds for all.
#pragma once

#include <cstddef>

#include "common/session/devices.h"
#include "common/session/types.h"
#include "common/session/vocabulary.h"

namespace oomrec::session {

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
  rank,          // outermost in a recording of many (oomrec merge); argument: the rank
};
inline constexpr u32 kMaxFrames = 512;

// An interned chain: walk `parent` to 0 to get the stack innermost first. The outermost node (whose
// parent is 0) is a special frame thread_group; in a recording made of many, a rank around it.
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
  u8 flags;  // kHolder…
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
  // Blocks that their thread freed before it allocated another: exact mode only. Stops at 2^32 − 1.
  Atomic<u32> temporary_count;
};
inline constexpr u8 kHolderEstimated = 1;  // one of its blocks was sampled, so others were not
inline constexpr u8 kHolderCandidate = 2;  // writer's own: may be among the next checkpoint's
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
  Atomic<u64> address;  // 0: free slot; of a block of space torch: one more
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
static_assert(kHostApiCount <= kLaneApis && kSpaceCount <= kLaneSpaces);

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
  // In the file: a u32 for each of the sums, blocks of that sum that were temporary
  // (Holder::temporary_count). 0: none.
  u64 temporaries_offset;
};
static_assert(offsetof(Lane, ring_offset) == 8 && offsetof(Lane, ring_next) == 24 &&
              offsetof(Lane, spaces) == 32 &&
              offsetof(Lane, sums_offset) == 32 + 48 * 12 + 16 * 96 &&
              offsetof(Lane, temporaries_offset) == offsetof(Lane, sums_offset) + 24 &&
              sizeof(Lane) == offsetof(Lane, temporaries_offset) + 8);

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
  DeviceEvidence device;  // of a device's request, whose `error` is the driver's own code
};
inline constexpr u64 kUnlimited = ~u64{0};
inline constexpr u8 kFailureProbe = 1;     // the caller has a plan B: no bundle
inline constexpr u8 kFailureRefused = 2;   // the recorder refused (soft limit), not the system
inline constexpr u8 kFailureInjected = 4;  // the user asked for this refusal (--fail)
static_assert(offsetof(Failure, node) == 24 && offsetof(Failure, error) == 36 &&
              offsetof(Failure, live_bytes) == 40 && offsetof(Failure, cgroup_limit_bytes) == 120 &&
              offsetof(Failure, repeats) == 128 && offsetof(Failure, counted) == 144 &&
              offsetof(Failure, rule) == 232 && offsetof(Failure, device) == 240 &&
              sizeof(Failure) == 328);

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

// The largest holders at one moment. Like points: used again when the table is full, in no order,
// time 0 while one is being written. Its rows stand side by side, and are used again with it.
inline constexpr u32 kCheckpoints = 256;     // at most …
inline constexpr u32 kCheckpointRows = 256;  // … with so many rows each
struct Checkpoint {
  Atomic<u64> time_ns;
  u64 live_bytes[kLaneSpaces];  // of all holders: as published, in usable bytes
  u32 first_row;                // entry in `checkpoint_rows`
  u32 rows;
  u32 capacity;  // writer's own: rows that there is room for
  u32 reserved;
};
struct CheckpointRow {
  u32 holder;
  u32 time_ms;  // its checkpoint's, since start: else the row belongs to another by now
  u64 live_bytes;
};
static_assert(sizeof(Checkpoint) == 120 && sizeof(CheckpointRow) == 16);

// What the program said of itself (oomrec_mark).
inline constexpr u32 kMarks = 4096;  // further ones are counted in Header::dropped_marks
struct Mark {
  u64 time_ns;
  StringId text;
  u32 thread;
};
static_assert(sizeof(Mark) == 16);

}  // namespace oomrec::session
