// Evidence for the verdict on a process' end, stored in the header of its session: part of
// layout.h. The process itself records its health, its crash, its killed children and its shared
// memory. Whoever investigates the end adds its death and a worker's.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

// The process' readings at its last check (common/limits/health.h): the evidence that remains after
// a kill. 0: unknown; kUnlimited: no limit.
struct Health {
  Atomic<u64> time_ns;  // of the check; stored last
  Atomic<u64> rss_bytes;
  Atomic<u64> live_bytes;  // heap + map, as published
  Atomic<u64> swap_bytes;
  Atomic<u64> major_faults;
  Atomic<u64> cgroup_used_bytes;   // working set, of the cgroup with the lowest limit
  Atomic<u64> cgroup_limit_bytes;  // the lowest among its own cgroup and the ancestors
  Atomic<u64> available_bytes;     // MemAvailable
  Atomic<u64> cgroup_oom_kills;    // the kernel's kills in its own cgroup so far
  Atomic<u64> system_oom_kills;    // of the machine (/proc/vmstat)
  Atomic<u32> pressure_some;  // PSI avg10 of memory, in 1/100 %: the cgroup's, or the machine's
  Atomic<u32> pressure_full;
  Atomic<u64> vm_bytes;  // address space
  Atomic<u64> rlimit_as_bytes;
};
static_assert(sizeof(Health) == 104 && offsetof(Health, pressure_some) == 80);

// A signal that ends the process, recorded by its own handler (recorder/failures/crash.h), and the
// failure that may have caused it. All zero: no signal, or not recorded.
inline constexpr u32 kCrashFrames = 32;
struct Crash {
  Atomic<u32> signal;  // stored last
  i32 code;            // si_code
  u64 address;         // si_addr of SIGSEGV and SIGBUS
  u64 time_ns;
  u32 thread;           // entry in `threads`
  u32 failure;          // the same thread's last failure, entry in `failures`; 0: none
  u64 failure_bytes;    // of that failure's latest repeat
  u64 failure_time_ns;  // likewise
  u32 flags;            // kCrash…
  i32 sender_pid;       // sender; 0: the kernel, for a fault
  u32 frame_count;
  u32 reserved;
  u64 frames[kCrashFrames];  // of its stack, innermost first (native ones: words as in Node)
};
inline constexpr u32 kCrashGuardPage = 1;  // the address is beyond the end of the thread's stack
inline constexpr u32 kCrashTerminate = 2;  // std::terminate is on the stack
inline constexpr u32 kCrashSucceededSince = 4;  // the failed stack has allocated since
inline constexpr u32 kCrashNew = 8;             // operator new made the failed call
inline constexpr u32 kCrashInBundle = 16;       // a bundle has it
inline constexpr u32 kCrashOtherThrow = 32;     // thrown elsewhere than at the failure
// Whether the kernel reported a fault address: not for a sent signal, nor for a wild address
// (SI_KERNEL).
inline bool has_address(const Crash& crash) noexcept {
  constexpr i32 kFromKernel = 0x80;
  constexpr u32 kBus = 7, kSegv = 11;
  return crash.code > 0 && crash.code != kFromKernel &&
         (crash.signal == kBus || crash.signal == kSegv);
}
static_assert(offsetof(Crash, frames) == 64 && sizeof(Crash) == 64 + 8 * kCrashFrames);

// Evidence about the death from outside: the waiting parent, the kernel's log, counters. Zero in a
// session; tools/deaths fills it in when a bundle is written.
struct Death {
  u64 realtime_ns;              // when it was noticed; 0: not investigated, and the rest is zero
  u32 flags;                    // kDeath…
  i32 wait_status;              // from wait(); with kDeathWaited
  u64 cgroup_oom_kills_before;  // at the process' last check
  u64 cgroup_oom_kills_after;
  u64 system_oom_kills_before;
  u64 system_oom_kills_after;
  i32 sender_pid;         // sender of the signal; 0: unknown
  u32 kernel_line_kind;   // KernelLine
  char kernel_line[256];  // the line of the kernel's log about this death; NUL-terminated
  u32 pressure_some;      // as in Health, when the death was noticed; with kDeathWaited
  u32 pressure_full;
};
inline constexpr u32 kDeathWaited = 1;
inline constexpr u32 kDeathAlone = 2;     // its cgroup had no other process
inline constexpr u32 kDeathAtOnce = 4;    // the counter rose within 1 s of the wait status
inline constexpr u32 kDeathOthers = 8;    // other processes died at the same time
inline constexpr u32 kDeathLogRead = 16;  // the kernel's log was readable back to the last tick
inline constexpr u32 kDeathParentCgroup = 32;   // its cgroup is gone: the counters are its parent's
inline constexpr u32 kDeathCgroupCounted = 64;  // the cgroup's counters are known before and after
inline constexpr u32 kDeathSystemCounted = 128;
inline constexpr u32 kDeathEarlierBoot = 256;  // the machine has rebooted since then
inline constexpr u32 kDeathSharedFull = 512;   // the file system in Header::shared was full
// A rank that its launcher ended with SIGTERM after another rank had run out of memory.
inline constexpr u32 kDeathEndedByLauncher = 1024;
// `kernel_line` is about a fault that ended the process; `wait_status` has its signal.
inline constexpr u32 kDeathFaultLogged = 2048;
// `kernel_line` has a pid of another namespace: it was found by cgroup, name and size.
inline constexpr u32 kDeathLineByName = 4096;
// Its parent, which sent the signal, had lost another child to one shortly before.
inline constexpr u32 kDeathAfterSibling = 8192;
// What ran out of memory, by the kernel's line about its kill. From `cpuset` on, the machine as a
// whole may have had memory left.
enum class KernelLine : u32 {
  none,
  cgroup,
  system,
  unscoped,    // it does not say: only the line of its reaper is there
  cpuset,      // of the memory nodes that a cpuset allows
  policy,      // of those that a memory policy allows
  page_fault,  // a page fault found none (gfp_mask=0x0): a cgroup's or a pool's may be meant
  sysrq,       // nothing: someone asked for the kill by SysRq f
};
static_assert(offsetof(Death, kernel_line) == 56 && sizeof(Death) == 320);

// A child that a signal ended, and that the process waited for.
struct EndedChild {
  i32 pid;
  i32 wait_status;
  Atomic<u64> time_ns;  // of the wait; stored last; 0: none
};
inline constexpr u32 kEndedChildren = 64;  // so many workers may end together
static_assert(sizeof(EndedChild) == 16);

// A worker of the process that died for lack of memory, summarized from the worker's own bundle.
// Filled in when the parent's bundle is written, like Death. Texts are NUL-terminated.
struct ChildDeath {
  i32 pid;  // 0: none
  i32 wait_status;
  u32 verdict;    // VerdictCode
  u32 certainty;  // Certainty
  u64 held_bytes;
  u64 largest_bytes;  // of its largest holder …
  char where[192];    // … "train.py:42 make_batch"
  char program[64];
  char bundle[64];    // name of its directory, beside the parent's; empty: none
  char summary[256];  // of its verdict
};
static_assert(offsetof(ChildDeath, where) == 32 && sizeof(ChildDeath) == 608);

// The latest writable shared mapping of a file in memory (tmpfs), and the free space at that time.
// A mapping with too little space stays recorded until it is unmapped, because writing to it raises
// SIGBUS.
struct SharedMemory {
  Atomic<u64> time_ns;  // stored last; 0: no such mapping
  u64 needed_bytes;     // bytes of the mapping that the file system still had to allocate
  u64 free_bytes;
  u64 total_bytes;
  Atomic<u64> address;  // of the mapping; 0 after it was unmapped
  char path[128];       // of the file, cut; NUL-terminated

  bool too_small() const noexcept { return address != 0 && needed_bytes > free_bytes; }
};
static_assert(offsetof(SharedMemory, path) == 40 && sizeof(SharedMemory) == 168);

// What links a crash to the failed request of its thread, or separates it from it. Recorded by the
// signal handler with Crash. All zero in older recordings: nothing is known.
struct CrashLink {
  u64 served_since;    // requests of the thread that were served since the failure
  u32 failure_frames;  // native frames of the failed request's stack, the innermost ones …
  u32 common_frames;   // … of which so many outermost ones are still on the crash's stack
  u32 flags;           // kLink…
  u32 reserved;
  char exception[96];  // mangled name of the type of the exception in flight; empty: none
  char function[96];   // the C library's function that raised an abort; empty: another one did
};
inline constexpr u32 kLinkKnown = 1;  // the other fields are valid
// What the program's code does with the failed call's result, as far as it could be followed.
inline constexpr u32 kLinkChecked = 2;      // it compares it
inline constexpr u32 kLinkUnchecked = 4;    // it passes it on or stores it without a comparison
inline constexpr u32 kLinkKept = 8;         // other functions may still have it
inline constexpr u32 kLinkOnFailure = 16;   // only a failure leads to where the crash is
inline constexpr u32 kLinkRegardless = 32;  // a success leads there as well
inline constexpr u32 kLinkDerived = 64;     // the fault address was computed from it
inline constexpr u32 kLinkArgument = 128;   // it was passed to the function that crashed
// About an abort.
inline constexpr u32 kLinkHeapCorruption = 256;  // the C library found its heap damaged
inline constexpr u32 kLinkBadAlloc = 512;   // the exception in flight is a std::bad_alloc, or …
inline constexpr u32 kLinkHandling = 1024;  // … it was thrown while one was being handled
// About the failed call.
inline constexpr u32 kLinkThrown = 2048;       // it threw a std::bad_alloc, so there is no result
inline constexpr u32 kLinkOtherThread = 4096;  // another thread than the crash's made it
// About an exception, an abort and an address.
inline constexpr u32 kLinkSaysMemory = 8192;   // the exception in flight says that memory was short
inline constexpr u32 kLinkDoubleFree = 16384;  // the C library found that a block was freed twice
// The failed call was a realloc's: its old block would have come to have the fault address.
inline constexpr u32 kLinkOldBlock = 32768;
static_assert(sizeof(CrashLink) == 24 + 96 + 96);

// How much the process and its own cgroup waited for memory during the time before a reading
// (common/limits/stalls.h). What others on the machine wait for is in Health. window_ns 0: unknown.
struct Stalls {
  u64 window_ns;
  u64 major_faults;     // of the process
  u64 blocked_ns;       // time for which it waited for block I/O; 0 if the kernel does not count it
  u64 cgroup_refaults;  // evicted pages that its cgroup needed again
  u32 cgroup_some;      // PSI avg10 of its cgroup, in 1/100 %; 0 in v1
  u32 cgroup_full;
};
static_assert(sizeof(Stalls) == 40);

// Levels read from outside while the process ran, and at its end: its own last check may be old.
// Like Death, of the process that observed the end. 0: unknown.
struct EndLevels {
  u64 realtime_ns;          // of the last reading before the end; 0: not read
  u64 resident_bytes;       // of the process
  u64 resident_peak_bytes;  // ru_maxrss, or the highest reading
  u64 major_faults;         // ru_majflt, or the last reading
  u64 cgroup_limit_bytes;   // of the cgroup that limits the process
  u64 cgroup_used_bytes;    // its working set
  u64 cgroup_peak_bytes;    // memory.peak, memory.max_usage_in_bytes
  u64 limit_hits_before;    // memory.events `max`, memory.failcnt: at the last reading …
  u64 limit_hits_after;     // … and after the end
  u64 available_bytes;      // of the machine
  Stalls stalls;
  u32 user_killer;  // UserKiller: who sent the signal, and whether memory was the reason
  u32 flags;
  // The daemon's line of a log; what an informant said, after its name and ": ". Of a recorded
  // parent, what its recording says of the signal, whether or not memory was the reason.
  char user_killer_line[256];
};
enum class UserKiller : u32 {
  none,
  systemd_oomd,
  earlyoom,
  kubelet,
  parent,
  lmkd,
  nohang,
  talos,
  informant,     // `oomrec ended`: for memory, …
  other_reason,  // … or for another reason
  oomd,
};
static_assert(offsetof(EndLevels, user_killer_line) == 128 && sizeof(EndLevels) == 384);

// The memory of the whole cgroup, or of the machine if that was full, at a kill: parts that add up
// to its usage. Filled in like Death, from the kernel's log of the kill or from memory.stat after
// it; without the kernel's report of the cgroup, its line about the kill still has what the process
// had. A process' part is its private memory; what it shares is in `shared_bytes` or `file_bytes`.
enum class AccountSource : u32 { none, kernel_log, memory_stat, kill_line };
struct CgroupAccount {
  u32 source;  // AccountSource
  u32 scope;   // AccountScope
  u64 limit_bytes;
  u64 usage_bytes;
  u64 recorded_bytes;    // of recorded processes
  u64 unrecorded_bytes;  // of other processes
  u64 shared_bytes;      // shmem and tmpfs
  u64 file_bytes;        // page cache
  u64 slab_bytes;
  u64 kernel_bytes;  // stacks, page tables, sockets and other memory of the kernel
  u64 other_bytes;   // the rest
  // Resident memory of this process. All zero: unknown.
  u64 own_anonymous_bytes;
  u64 own_file_bytes;
  u64 own_shared_bytes;
  // The other process with the most resident memory.
  u64 largest_bytes;
  i32 largest_pid;  // as in the source; 0: none
  u32 largest_recorded;
  char largest_name[16];

  u64 own_bytes() const noexcept { return own_anonymous_bytes + own_file_bytes + own_shared_bytes; }
  AccountSource source_kind() const noexcept { return static_cast<AccountSource>(source); }
  // Whether the kernel itself told, of the moment of the kill: what the whole cgroup had …
  bool is_at_kill() const noexcept { return source_kind() == AccountSource::kernel_log; }
  // … and what this process had.
  bool is_own_at_kill() const noexcept {
    return (is_at_kill() || source_kind() == AccountSource::kill_line) && own_bytes() != 0;
  }
};
enum class AccountScope : u32 { cgroup, machine };
static_assert(sizeof(CgroupAccount) == 136);

// That a runtime reached a memory limit of its own (V8's heap, the JVM's, PHP's memory_limit): no
// request was refused, the runtime itself gives up. Recorded in the process, when it does.
struct RuntimeLimit {
  Atomic<u32> runtime;  // Runtime; stored last
  u32 certainty;        // Certainty
  char evidence[240];   // what shows it, in words; NUL-terminated
};
enum class Runtime : u32 { none, v8, jvm, php };
static_assert(sizeof(RuntimeLimit) == 248);

// All evidence about the end that is collected from outside, on its way into a session's header.
struct EndEvidence {
  Death death;
  EndLevels levels;
  CgroupAccount account;
};

}  // namespace oomrec::session
