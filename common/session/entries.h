// The entries of a session file's tables. Part of layout.h, which explains the file and the rules
// for all entries.
#pragma once

#include <cstddef>

#include "common/session/device_layout.h"
#include "common/session/functions.h"
#include "common/session/types.h"

namespace oomrec::session {

// --- Strings and frames -------------------------------------------------------------------------

// A string's id is its byte offset in the table `strings`: a u32 length and the bytes (4-byte
// aligned, inside one chunk, not NUL-terminated). Id 0: no string. Strings may contain any bytes:
// paths are not always UTF-8, line tables never are.
using StringId = u32;

// One frame in one word: kind in bits 62–63.
//   native   61 guessed (found without CFI) · 60 exact (a signal frame: the pc is the instruction
//            itself, else a return address) · 40–55 module id · 0–39 offset from the module's base;
//            module 0: the offset is the low 40 bits of an address in no known module
//   python   32–60 code id · 0–31 byte offset of the instruction in the bytecode
//   special  56–61 SpecialFrame · 0–31 argument (StringId or 0)
//   script   32–60 code id · 0–31 line; since version 12
enum class FrameKind : u8 { native, python, special, script };
enum class SpecialFrame : u8 {
  none,
  thread_group,  // outermost node of every stack; argument: name of the group (StringId)
  truncated,     // outer frames are missing: more than kMaxFrames, or unwinding failed
  inherited,     // memory inherited from the parent of a fork; argument 0
  context,       // the program's label, inside its group; argument: StringId
  rank,          // outermost in a merged recording (oomrec merge); argument: the rank
  object_pool,   // what Python has mapped for small objects, without the objects; argument 0
  preexisting,   // memory of a program from before `oomrec attach`; argument 0
  forgotten,     // since version 11: stacks that nothing needs any more, by their innermost frame
};
inline constexpr u32 kMaxFrames = 512;

// An interned chain: following `parent` to 0 yields the stack, innermost first. The outermost node
// (parent 0) is a special frame thread_group; in a merged recording, a rank around it.
struct NodeEntry {
  u32 parent;
  u32 frame;  // entry in `frames`, each of which many nodes have
};
static_assert(sizeof(NodeEntry) == 8);
struct Frame {
  u64 word;
};
static_assert(sizeof(Frame) == 8);

// A node with its frame: View::read() makes it. Before version 10 `nodes` had it itself, as have
// bundles with only the largest stacks.
struct Node {
  u32 parent;
  u32 reserved;  // before version 10, for the writer
  u64 frame;
};
static_assert(sizeof(Node) == 16 && offsetof(Node, frame) == 8);

// --- Holders and live allocations ---------------------------------------------------------------

// A holder: the live memory of one stack in one space. Its figures are in one word, as long as they
// fit (brief_holder.h); View::read() makes a Holder of both forms. Before version 10 `holders` had
// the Holder itself, as have bundles with only the largest stacks.
struct HolderEntry {
  u32 node;
  u8 space;  // Space
  u8 reserved;
  u16 api;  // Api of its first allocation
  Atomic<u64> figures;
};
static_assert(alignof(HolderEntry) == 8 && sizeof(HolderEntry) == 16 &&
              offsetof(HolderEntry, figures) == 8);

// The figures of a holder. In sampled mode small blocks count with their weight, so the figures are
// unbiased estimates; `flags` says so. Bytes of the heap are what its blocks take up: usable bytes
// and gaps (LiveBlock).
struct Holder {
  u32 node;
  u8 space;  // Space
  u8 flags;  // kHolder…
  u16 api;   // Api of its first allocation
  Atomic<u64> live_bytes;
  Atomic<u64> live_count;
  Atomic<u64> total_bytes;  // ever allocated
  Atomic<u64> total_count;
  // Live at the last peak step of the space (peak_space_of). Valid if peak_epoch equals the
  // space's; otherwise the holder has not changed since that step, and live_* is its value at the
  // peak.
  Atomic<u64> peak_bytes;
  Atomic<u64> peak_count;
  Atomic<u32> peak_epoch;
  // Blocks freed by their thread before its next allocation; exact mode only. Saturates
  // at 2^32 − 1.
  Atomic<u32> temporary_count;
};
inline constexpr u8 kHolderEstimated = 1;  // a block of it was sampled: the figures are estimates
inline constexpr u8 kHolderCandidate = 2;  // for the writer: may be among the next checkpoint's
static_assert(sizeof(Holder) == 64 && offsetof(Holder, live_bytes) == 8 &&
              offsetof(Holder, total_bytes) == 24 && offsetof(Holder, peak_bytes) == 40 &&
              offsetof(Holder, peak_epoch) == 56);

// One lane's unpublished changes to one holder of the heap: a reader adds them to the holder's
// figures. They let most events of exact mode write only to memory of their own thread. A lane's
// sums are an array indexed by the node's low bits. If another node needs the slot, its sum is
// added to the holder first. Only the lane's owner changes them.
struct HolderSum {
  Atomic<u32> node;
  Atomic<u32> holder;  // 0: the slot is free, or being added to its holder
  Atomic<u64> allocated_bytes;
  Atomic<u64> freed_bytes;
  Atomic<u64> counts;  // blocks allocated in the high half, freed in the low

  u64 allocated_count() const noexcept { return counts >> 32; }
  u64 live_bytes() const noexcept { return allocated_bytes - freed_bytes; }  // may wrap below zero
  u64 live_count() const noexcept { return allocated_count() - (counts & 0xffff'ffff); }
};
static_assert(sizeof(HolderSum) == 32 && offsetof(HolderSum, allocated_bytes) == 8 &&
              offsetof(HolderSum, counts) == 24);

// The entries of some tables are reused. The first word is stored last, and is 0 before anything
// else changes, so that a reader can tell that an entry has changed meanwhile (View::read). Where a
// later entry can have the same first word, its `version` is another one.

// A live allocation outside the side table. Slots are reused. Its holder counts it as `weight`
// blocks of `bytes` each.
struct LiveBlock {
  Atomic<u64> address;  // 0: free slot; blocks of space torch: address + 1
  u64 bytes : 48;       // usable bytes and the gap; as requested where the heap's are not known
  u64 gap_bytes : 16;   // what its alignment keeps free behind it
  u32 holder;
  u32 weight;   // 1 unless sampled
  u32 birth_s;  // seconds since start
  u32 version;
};
static_assert(sizeof(LiveBlock) == 32 && offsetof(LiveBlock, holder) == 16);

// The *side table* has the small live blocks of the heap that are recorded exactly: one word for
// every 2^shift bytes of address space, with at most one block in each (format: small_block.h). One
// page of it covers kSideSpanBytes of addresses.
struct SidePage {
  u64 start;  // address
  u32 page;   // its words start at this page (4096 bytes) of the file
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
  u32 version;
};
// Only `counted` ranges count wholly as live bytes, in holders and against the limit.
enum class RangeKind : u32 {
  none,
  counted,      // writable, anonymous (private or shared)
  reservation,  // not to be used as it is: SpaceTotals::reserved_bytes
  other,        // files and read-only memory: needed to understand a later mprotect or munmap
  // Since version 12, writable: of which what the process has written counts, or what it has
  // touched of a file in memory (tmpfs, memfd). As of usable reservations, a look finds that out.
  private_file,
  memory_file,
};
static_assert(sizeof(LiveRange) == 32 && offsetof(LiveRange, holder) == 16);

// What one holder's memory was found to be by a look at the process' pages: of mappings, and of
// blocks of kLookBytes or more. A smaller block counts as touched.
struct ResidencyRow {
  u32 holder;
  u32 node;             // of the holder then: its number may be another's by now
  u64 untouched_bytes;  // of its live bytes: neither in memory nor in swap
  // Of its reservations and file mappings, what is touched. The process itself then counts that as
  // live; a look from outside may have found more.
  u64 reserved_bytes;
  u32 birth_s;  // of its newest memory that has untouched pages: since start
  // 0, or reserved_bytes are of reservations of this holder: those that grew while the stack ran,
  // lately at birth_s.
  u32 reserving;
};

// Whose stack ran while memory became resident that no recorded allocation explains: most of it of
// reservations.
struct GrowthSample {
  Atomic<u64> word;  // holder, KiB: one word, for it may be written when the process dies

  u32 holder() const noexcept { return static_cast<u32>(word.load(std::memory_order_relaxed)); }
  u64 bytes() const noexcept { return word.load(std::memory_order_relaxed) >> 32 << 10; }
  void set(u32 holder, u64 bytes) noexcept {
    word.store(holder | bytes >> 10 << 32, std::memory_order_relaxed);
  }
};
inline constexpr u32 kGrowthSamples = 8;  // the largest
inline constexpr u64 kLookBytes = u64{64} << 10;

// The kinds of memory of which a process' resident memory consists.
enum class ResidentKind : u32 {
  heap,           // [heap], what looks like glibc's arenas, and mappings with small blocks in them
  held,           // mappings and large blocks that have holders
  unheld,         // other anonymous memory: what no hook saw
  stacks,         // the main thread's, and what looks like those of others
  written_files,  // pages of private file mappings that the process has written, and variables
  files,          // pages that the kernel can read again
  shared,         // tmpfs, memfd, System V, and other shared memory
  recorder,       // the session, and seen by the process itself also our private memory
};
inline constexpr u32 kResidentKinds = 8;

// A look at which of the process' pages are in memory or in swap ("touched").
struct Residency {
  u64 time_ns;
  u64 touched_bytes;               // of the process
  u64 untouched_bytes;             // of all holders, also of those without a row
  u64 live_bytes;                  // heap + map, with unpublished shares
  u64 kind_bytes[kResidentKinds];  // by ResidentKind; in memory, without swap
  u32 row_count;
  u32 flags;  // kResidency…
  // Of blocks of the heap of kLookBytes or more: the other live bytes of the heap are in small
  // ones.
  u64 large_block_bytes;
  u64 variable_bytes;  // of the executable's static variables: part of written_files
  u64 reserved;
};
inline constexpr u32 kResidencyPartial = 1;  // there was no time for all of it

// It is followed by its rows, of the holders with the most bytes, and together they are in entries
// of `residency`: from Header::latest_look on, which is 1 or 1 + kResidencyPages. The two
// alternate, so that one is complete whenever the process dies.
struct ResidencyPage {
  u64 words[512];
};
inline constexpr u32 kResidencyPages = 8;
inline constexpr u32 kResidencyRows =
    (kResidencyPages * sizeof(ResidencyPage) - sizeof(Residency)) / sizeof(ResidencyRow);
static_assert(sizeof(ResidencyRow) == 32 && sizeof(Residency) == 128 &&
              sizeof(ResidencyPage) == 4096);

// --- Threads, counters, events ------------------------------------------------------------------

// Since version 11 the entries of ended threads are used again; the latest have one, and those that
// failures name.
struct Thread {
  i32 tid;    // 0: being added
  u32 group;  // StringId: the name without digits
  char name[16];
  u64 first_seen_ns;
};
static_assert(sizeof(Thread) == 32);

// One lane's counters for one space. Only its owner writes them; a reader sums over all lanes.
// live = allocated − freed, in usable bytes: exact in both modes.
struct SpaceCounters {
  Atomic<u64> allocated_bytes;  // as requested
  Atomic<u64> allocated_count;
  Atomic<u64> freed_count;
  Atomic<u64> usable_allocated_bytes;
  Atomic<u64> usable_freed_bytes;
  Atomic<u64> failed_count;
};
static_assert(sizeof(SpaceCounters) == 48);

// Events by size (bucket b: 2^(b-1) ≤ bytes < 2^b; bucket 0: zero bytes) and by API. Weighted:
// estimates in sampled mode.
struct Tally {
  Atomic<u64> count;
  Atomic<u64> bytes;
};
inline constexpr u32 kSizeBuckets = 48;
inline constexpr u32 kLaneApis = 48;
inline constexpr u32 kLaneSpaces = 12;
static_assert(kHostApiCount <= kLaneApis && kSpaceCount <= kLaneSpaces);

// The large request that a thread is making (recorder/events/in_flight.h).
struct InFlight {
  Atomic<u64> bytes;   // 0: none; stored last, and cleared first
  u64 replaced_bytes;  // of a realloc: the old block, which its holder does not count any more
  Atomic<u32> node;
  u32 replaced_holder;  // 0: none
  u16 api;
  u8 space;
  u8 reserved[5];
};
static_assert(sizeof(InFlight) == 32);

// The part of a session that one thread writes: counters, and the ring of its latest events. A new
// thread takes over the lane of a dead one and continues its counters.
struct Lane {
  Atomic<i32> owner_tid;  // 0: no owner
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
  Atomic<u32> sums_epoch;  // SpaceTotals::peak_epoch of the heap when they were recorded
  Atomic<u64> stamps;      // number of stamps among the ring's events so far
  // In the file: for each sum a u32, the number of its temporary blocks (Holder::temporary_count).
  // 0: none.
  u64 temporaries_offset;
  InFlight in_flight;  // since version 12
};
static_assert(offsetof(Lane, ring_offset) == 8 && offsetof(Lane, ring_next) == 24 &&
              offsetof(Lane, spaces) == 32 &&
              offsetof(Lane, sums_offset) == 32 + 48 * 12 + 16 * 96 &&
              offsetof(Lane, temporaries_offset) == offsetof(Lane, sums_offset) + 24 &&
              offsetof(Lane, in_flight) == offsetof(Lane, temporaries_offset) + 8 &&
              sizeof(Lane) == offsetof(Lane, in_flight) + sizeof(InFlight));

// One event in two words (format: ring.h).
struct Slot {
  Atomic<u64> first;
  Atomic<u64> second;
};
static_assert(sizeof(Slot) == 16);

// --- Failures -----------------------------------------------------------------------------------

// Limits on tasks, mappings and committed memory at a failure that one of them may explain. A limit
// is known if its counter is not 0; kUnlimited: no limit.
struct CountedLimits {
  // After EAGAIN.
  u64 own_tasks;           // threads of this process
  u64 own_tasks_limit;     // RLIMIT_NPROC, for all tasks of the user; kUnlimited: does not apply
  u64 cgroup_tasks;        // of the cgroup with the fewest tasks left, up to the root
  u64 cgroup_tasks_limit;  // pids.max
  u64 machine_tasks;
  u64 threads_max;
  u64 pid_max;  // process ids available
  // After ENOMEM.
  u64 committed_bytes;     // Committed_AS
  u64 commit_limit_bytes;  // kUnlimited unless vm.overcommit_memory is 2
  u64 mappings;
  u64 max_mappings;  // vm.max_map_count
};
static_assert(sizeof(CountedLimits) == 88 && offsetof(CountedLimits, committed_bytes) == 56);

// Memory that the system sets aside: what a request for locked memory or huge pages had to fit in.
// 0: unknown, or the request needed none. kUnlimited: no limit.
struct MemoryPools {
  u64 locked_bytes;        // VmLck
  u64 locked_limit_bytes;  // RLIMIT_MEMLOCK; kUnlimited: does not apply to the process
  u64 huge_page_bytes;     // size of the pages the request needed
  u64 huge_total_bytes;    // of the machine's pool of such pages …
  u64 huge_used_bytes;     // … in use or reserved
  u64 huge_cgroup_bytes;   // hugetlb.SIZE.rsvd.current, of the cgroup with the lowest limit
  u64 huge_cgroup_limit_bytes;
  u64 available_bytes;  // MemAvailable of the machine
};
static_assert(sizeof(MemoryPools) == 64);

// A failed request, with all the evidence for its verdict. Written once; afterwards only the atomic
// fields change.
struct Failure {
  u64 time_ns;
  u64 realtime_ns;
  u64 bytes;  // as requested; saturated if the program's product overflows
  u32 node;
  u32 thread;
  u16 api;
  u8 space;
  u8 flags;  // kFailure…
  i32 error;
  // Evidence, read when the request failed. 0: unknown; kUnlimited: no limit.
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
  Atomic<u32> repeats;  // further failures at the same stack
  Atomic<u32> bundle;   // its bundle's number in the process; 0: none yet
  Atomic<u64> last_ns;  // time of the latest repeat
  CountedLimits counted;
  StringId rule;  // the rule of --fail that injected it; 0: none
  u32 reserved;
  DeviceEvidence device;  // for a device's request; then `error` is the driver's code
  MemoryPools pools;
};
inline constexpr u64 kUnlimited = ~u64{0};
inline constexpr u8 kFailureProbe = 1;       // the caller has a fallback: no bundle
inline constexpr u8 kFailureByRecorder = 2;  // by the recorder (soft limit), not by the system
inline constexpr u8 kFailureInjected = 4;    // injected by the user (--fail)
inline constexpr u8 kFailureAftershock = 8;  // followed from the one that `bundle` reports
inline constexpr u8 kFailureUnserved = 16;   // a probe, after which the program ended unserved
inline constexpr u8 kFailureCommit = 32;     // of address space that the program had reserved
static_assert(offsetof(Failure, node) == 24 && offsetof(Failure, error) == 36 &&
              offsetof(Failure, live_bytes) == 40 && offsetof(Failure, cgroup_limit_bytes) == 120 &&
              offsetof(Failure, repeats) == 128 && offsetof(Failure, counted) == 144 &&
              offsetof(Failure, rule) == 232 && offsetof(Failure, device) == 240 &&
              offsetof(Failure, pools) == 328 && sizeof(Failure) == 392);

// --- Names of things ----------------------------------------------------------------------------

// Entries of libraries that were unloaded are used again when no frame names them.
struct Module {
  u64 base;  // load bias: address − base is the offset in symbol files
  u64 start;
  u64 end;
  StringId path;
  u32 generation;  // generation of the module list: the same address may be another library
  u8 build_id[32];
  u32 build_id_bytes;  // 0: none
  u32 version;         // of a reused entry; kModuleChanges: it is free, or being written
};
inline constexpr u32 kModuleChanges = ~u32{0};
static_assert(sizeof(Module) == 72 && offsetof(Module, version) == 68);

// A Python code object, or a function of a script (Lua's). The tools decode Python's lines from
// `line_table`, in the format of the interpreter's version (Header::python.version_hex).
struct Code {
  StringId file;
  StringId name;  // qualified, if the version has that
  u32 first_line;
  StringId line_table;  // a script's frames have their line: 0
};
static_assert(sizeof(Code) == 16);

// --- Time line, checkpoints, marks, signals -----------------------------------------------------

// Not ordered by time: when the table is full, entries are reused for later points. Readers sort
// them and skip one with time 0, which is being written.
struct Point {
  u64 time_ns;
  u64 rss_bytes;
  u64 live_bytes[kLaneSpaces];
};
static_assert(sizeof(Point) == 112);

// The largest holders at one moment. Like points, entries are reused when the table is full, are
// unordered, and have time 0 while being written. Its rows are consecutive and are reused with it.
inline constexpr u32 kCheckpoints = 256;     // at most …
inline constexpr u32 kCheckpointRows = 256;  // … with so many rows each
struct Checkpoint {
  Atomic<u64> time_ns;
  u64 live_bytes[kLaneSpaces];  // all holders: published usable bytes
  u32 first_row;                // entry in `checkpoint_rows`
  u32 rows;
  u32 capacity;  // for the writer: capacity in rows
  u32 reserved;
};
struct CheckpointRow {
  u32 holder;
  u32 time_ms;  // the checkpoint's, since start; a mismatch means that the row was reused
  u64 live_bytes;
};
static_assert(sizeof(Checkpoint) == 120 && sizeof(CheckpointRow) == 16);

// A mark that the program set (oomrec_mark). Since version 11 entries are reused, like points.
inline constexpr u32 kMarks = 4096;  // those that gave way are counted in Header::dropped_marks
struct Mark {
  u64 time_ns;
  StringId text;
  u32 thread;
};
static_assert(sizeof(Mark) == 16);

// A SIGTERM or SIGKILL that the process sent to another one, perhaps to a child of its own.
inline constexpr u32 kSentSignals = 4096;  // the latest; since version 11 entries are reused
struct SentSignal {
  u64 time_ns;
  i32 pid;
  i32 signal;
  u64 resident_bytes;  // of the other process, just before; 0: unknown
  u32 node;            // stack of the call; 0: unknown
  u32 reserved;
};
static_assert(sizeof(SentSignal) == 32 && offsetof(SentSignal, node) == 24);

}  // namespace oomrec::session
