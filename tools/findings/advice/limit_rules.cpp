// The limit to raise and to which value, or the machine that would do: the last resort for each
// verdict about memory.
//
// A value is what the process is known to have needed at once (its peak and the failed request),
// plus a quarter. A process killed at a limit never showed what it needs: its value is half as much
// again, and the sentence says that it is a guess.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/verdict/kinds.h"
#include "tools/base/text.h"
#include "tools/findings/advice/advice.h"

namespace oomrec::tools::findings {
namespace {

constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t with_quarter(std::uint64_t value) { return value + value / 4; }

// Rounded up to an eighth of its power of two: a value that a person would choose.
std::uint64_t rounded(std::uint64_t bytes) {
  const std::uint64_t step = std::max(std::bit_floor(std::max(bytes, kMiB)) / 8, kMiB);
  return (bytes + step - 1) / step * step;
}

// "640M", "3G": as options and container limits take it.
std::string value_text(std::uint64_t bytes) {
  return bytes % kGiB == 0 ? fmt::format("{}G", bytes / kGiB) : fmt::format("{}M", bytes / kMiB);
}

// What the process is known to have needed at once.
std::uint64_t needed_bytes(const AdviceFacts& facts) {
  const std::uint64_t used = is_count_limit(facts.limit.kind) ? 0 : facts.limit.used;
  return std::max(used, facts.limit.peak_bytes) + facts.request_bytes;
}

// Whether the process ended or stands at the limit itself, so that its need is not known.
bool is_need_unknown(const AdviceFacts& facts) {
  return facts.request_bytes == 0 && facts.limit.limit != 0 &&
         needed_bytes(facts) <= with_quarter(facts.limit.limit);
}

std::uint64_t proposed_bytes(const AdviceFacts& facts) {
  const std::uint64_t more = is_need_unknown(facts) ? facts.limit.limit + facts.limit.limit / 2
                                                    : with_quarter(needed_bytes(facts));
  return rounded(std::max(more, facts.limit.limit + 1));
}

std::string evidence_text(const AdviceFacts& facts) {
  if (is_need_unknown(facts)) {
    return fmt::format("It ended at its limit of {}, so how much it needs is not known",
                       size_text(facts.limit.limit));
  }
  return fmt::format("It needed at least {} at once", size_text(needed_bytes(facts)));
}

// A process that grows reaches any limit.
std::string trend_text(const AdviceFacts& facts) {
  const auto growing = std::find_if(facts.held.begin(), facts.held.end(),
                                    [](const SubjectFigures& held) { return held.growth; });
  if (growing == facts.held.end() || growing->growth->bytes_per_second < 1) return {};
  const double per_minute = growing->growth->bytes_per_second * 60;
  return fmt::format(" It grew by {} a minute, so that a higher limit only delays the end.",
                     size_text(static_cast<std::uint64_t>(per_minute)));
}

std::string others_text(const AdviceFacts& facts) {
  if (facts.limit.kind != LimitKind::cgroup || facts.limit.other_bytes < facts.limit.limit / 4)
    return {};
  return fmt::format(" Other processes held {} of the cgroup's memory: give them one of their own.",
                     size_text(facts.limit.other_bytes));
}

bool exceeds_machine(const AdviceFacts& facts, std::uint64_t bytes) {
  return facts.limit.ram_bytes != 0 && bytes > facts.limit.ram_bytes + facts.limit.swap_bytes;
}

std::string machine_text(const AdviceFacts& facts, std::uint64_t bytes) {
  return fmt::format(
      "This machine is too small for it: it has {} of RAM{}, and the program needs about {}",
      size_text(facts.limit.ram_bytes),
      facts.limit.swap_bytes == 0
          ? ""
          : fmt::format(" and {} of swap", size_text(facts.limit.swap_bytes)),
      size_text(bytes));
}

// --- A limit on bytes or on a number of things ---------------------------------------------------

struct Knob {
  LimitKind kind;
  std::string_view advice;  // {0}: the value as 640M or a number, {1}: in KiB, {2}: in 2-MiB pages
};

constexpr Knob kKnobs[] = {
    {LimitKind::soft, "set --limit {0}"},
    {LimitKind::rlimit_as,
     "set --limit-as {0} (ulimit -v {1}), or no limit on address space: it also counts memory that "
     "is never touched"},
    {LimitKind::rlimit_data, "set ulimit -d {1}"},
    {LimitKind::cgroup,
     "give the cgroup {0} (memory.max, docker run --memory={0}, resources.limits.memory, "
     "MemoryMax=, oomrec run --cgroup {0})"},
    {LimitKind::device, "set --limit-gpu {0}, or use smaller batches"},
    {LimitKind::commit,
     "the machine promises no more than it has (vm.overcommit_memory 2): add swap, raise "
     "vm.overcommit_ratio, or let the program reserve less"},
    {LimitKind::rlimit_nproc, "set ulimit -u {0}, or start fewer threads and processes"},
    {LimitKind::pids,
     "set pids.max (docker run --pids-limit={0}, TasksMax=), or start fewer threads and processes"},
    {LimitKind::threads_max, "run sysctl kernel.threads-max={0}, or start fewer threads"},
    {LimitKind::pid_max, "run sysctl kernel.pid_max={0}, or start fewer processes"},
    {LimitKind::max_map_count,
     "run sysctl vm.max_map_count={0}, or make fewer and larger mappings"},
    {LimitKind::memlock, "set ulimit -l {1} (LimitMEMLOCK=, docker run --ulimit memlock=…)"},
    {LimitKind::hugetlb,
     "reserve more huge pages (for 2 MiB each: sysctl vm.nr_hugepages={2}), or let the program "
     "fall back to ordinary ones"},
};

std::string counted_text(const AdviceFacts& facts, const Knob& knob) {
  const std::uint64_t twice = 2 * std::max(facts.limit.limit, facts.limit.used);
  return fmt::format("The limit of {} is reached: {}.", count_text(facts.limit.limit),
                     fmt::format(fmt::runtime(knob.advice), twice, twice, twice));
}

std::string bytes_text(const AdviceFacts& facts, const Knob& knob) {
  const std::uint64_t bytes = proposed_bytes(facts);
  constexpr std::uint64_t kHugePage = 2 * kMiB;
  const bool in_ram = knob.kind == LimitKind::soft || knob.kind == LimitKind::cgroup;
  if (in_ram && exceeds_machine(facts, bytes)) {
    return machine_text(facts, bytes) + ". Use a larger one, or let it hold less at a time." +
           trend_text(facts);
  }
  return fmt::format("{}: {}.", evidence_text(facts),
                     fmt::format(fmt::runtime(knob.advice), value_text(bytes), bytes / kKiB,
                                 (bytes + kHugePage - 1) / kHugePage)) +
         trend_text(facts) + others_text(facts);
}

// --- A verdict without such a limit
// ---------------------------------------------------------------

std::string request_text(const AdviceFacts& facts) {
  return machine_text(facts, rounded(with_quarter(facts.request_bytes))) +
         ", if the size is meant. Check first where the size comes from.";
}

std::string machine_full_text(const AdviceFacts& facts) {
  const std::uint64_t bytes =
      rounded(std::max(with_quarter(needed_bytes(facts)), with_quarter(facts.limit.ram_bytes)));
  return fmt::format(
             "The machine's memory was full, of which this process used at least {}. Stop other "
             "programs, or use a machine with about {}; `oomrec run --cgroup {}` keeps it from "
             "taking others down with it.",
             size_text(needed_bytes(facts)), size_text(bytes),
             value_text(rounded(with_quarter(needed_bytes(facts))))) +
         trend_text(facts);
}

std::string unexplained_text(const AdviceFacts&) {
  return "No limit that can be read explains it. Compare `ulimit -a`, `free -m` and "
         "`sysctl vm.overcommit_memory`, and ask for the memory in smaller pieces.";
}

std::string thread_text(const AdviceFacts&) {
  return "A thread needs address space for its stack: try smaller stacks (ulimit -s, "
         "threading.stack_size), or fewer threads or processes.";
}

std::string exception_text(const AdviceFacts&) {
  return "The program computed a size that it could not even ask for: print that size where the "
         "exception was raised.";
}

std::string runtime_text(const AdviceFacts& facts) {
  const std::uint64_t bytes = rounded(with_quarter(needed_bytes(facts)));
  struct Runtime {
    std::string_view program, option;
  };
  constexpr Runtime kRuntimes[] = {{"node", "NODE_OPTIONS=--max-old-space-size={0}"},
                                   {"java", "-Xmx{0}m"},
                                   {"php", "memory_limit={0}M"},
                                   {"dotnet", "DOTNET_GCHeapHardLimit={1:x}"}};
  for (const Runtime& runtime : kRuntimes) {
    if (!facts.limit.program.starts_with(runtime.program)) continue;
    return fmt::format("{}'s own limit was reached, not the machine's: try {}.", runtime.program,
                       fmt::format(fmt::runtime(runtime.option), bytes / kMiB, bytes)) +
           trend_text(facts);
  }
  return "The language runtime's own limit was reached, not the machine's: raise its heap limit "
         "(its documentation names the option)." +
         trend_text(facts);
}

std::string user_killer_text(const AdviceFacts& facts) {
  return fmt::format(
             "A service ended it before the kernel would have. It used at least {}: give it a "
             "cgroup "
             "that has this much to itself, or change the service's thresholds (systemd-oomd: "
             "ManagedOOMPreference=avoid; earlyoom: --avoid).",
             size_text(needed_bytes(facts))) +
         trend_text(facts);
}

std::string pressure_text(const AdviceFacts& facts) {
  const std::uint64_t bytes =
      rounded(with_quarter(std::max(needed_bytes(facts), facts.limit.limit)));
  return fmt::format(
             "It waits for pages that the kernel had to evict: give it about {}, let it "
             "work on less data at a time, or run fewer such processes at once.",
             size_text(bytes)) +
         trend_text(facts);
}

std::string child_text(const AdviceFacts&) {
  return "The worker's own bundle says what it held and which limit it reached. Start with fewer "
         "workers or less data for each.";
}

std::string device_text(const AdviceFacts& facts) {
  if (facts.limit.limit == 0)
    return "Use smaller batches, or keep fewer tensors on the GPU between steps.";
  const std::uint64_t bytes = rounded(facts.limit.used + facts.request_bytes);
  return fmt::format(
      "It needs a GPU with about {}, smaller batches, or other programs off this "
      "GPU (nvidia-smi, rocm-smi).",
      size_text(bytes));
}

std::string pool_text(const AdviceFacts&) {
  return "Enough memory is free, in pieces that are too small: trim the pool, ask for smaller "
         "pieces, or for the large ones first.";
}

std::string unchecked_text(const AdviceFacts&) {
  return "The program went on after a request was refused: check the result of the call, and free "
         "something or end in good order.";
}

struct Action {
  VerdictCode code;
  std::string (*text)(const AdviceFacts&);
};

constexpr Action kActions[] = {
    {VerdictCode::request_too_large, request_text},
    {VerdictCode::allocation_failed, unexplained_text},
    {VerdictCode::mapping_failed, unexplained_text},
    {VerdictCode::thread_creation_failed, thread_text},
    {VerdictCode::fork_failed, thread_text},
    {VerdictCode::memory_lock_failed, unexplained_text},
    {VerdictCode::exception, exception_text},
    {VerdictCode::null_dereference, unchecked_text},
    {VerdictCode::uncaught_bad_alloc, unchecked_text},
    {VerdictCode::crash_after_refusal, unchecked_text},
    {VerdictCode::cgroup_oom_kill, machine_full_text},
    {VerdictCode::system_oom_kill, machine_full_text},
    {VerdictCode::killed_near_limit, machine_full_text},
    {VerdictCode::terminated_under_pressure, pressure_text},
    {VerdictCode::memory_pressure, pressure_text},
    {VerdictCode::near_limit, pressure_text},
    {VerdictCode::user_space_oom_kill, user_killer_text},
    {VerdictCode::runtime_limit, runtime_text},
    {VerdictCode::child_killed, child_text},
    {VerdictCode::device_out_of_memory, device_text},
    {VerdictCode::device_limit, device_text},
    {VerdictCode::device_fragmentation, pool_text},
    {VerdictCode::soft_limit, unexplained_text},
    {VerdictCode::address_space_limit, unexplained_text},
    {VerdictCode::data_limit, unexplained_text},
};

// A verdict whose limit says nothing about what to raise.
bool is_about_machine(VerdictCode code) {
  return code == VerdictCode::request_too_large || code == VerdictCode::system_oom_kill ||
         code == VerdictCode::device_out_of_memory || code == VerdictCode::memory_pressure ||
         code == VerdictCode::user_space_oom_kill || code == VerdictCode::runtime_limit;
}

bool has_action(VerdictCode code) {
  return code == VerdictCode::near_limit || code == VerdictCode::memory_pressure ||
         code == VerdictCode::thread_creation_failed || code == VerdictCode::fork_failed ||
         (verdict::is_death_related_to_memory(code) && code != VerdictCode::simulated);
}

}  // namespace

std::optional<Hint> raise_limit(const AdviceFacts& facts) {
  if (!has_action(facts.verdict)) return {};
  const auto knob = std::find_if(std::begin(kKnobs), std::end(kKnobs), [&](const Knob& row) {
    return row.kind == facts.limit.kind && facts.limit.limit != 0;
  });
  if (knob != std::end(kKnobs) && !is_about_machine(facts.verdict)) {
    return Hint{
        {}, is_count_limit(knob->kind) ? counted_text(facts, *knob) : bytes_text(facts, *knob), {}};
  }
  for (const Action& action : kActions)
    if (action.code == facts.verdict) return Hint{{}, action.text(facts), {}};
  return {};
}

std::optional<Hint> enlarge_shared_memory(const AdviceFacts& facts) {
  if (facts.verdict != VerdictCode::shared_memory_full) return {};
  const std::string size = value_text(
      rounded(with_quarter(facts.limit.shared_total_bytes + facts.limit.shared_needed_bytes)));
  return Hint{{},
              fmt::format("The shared-memory file system of {} is too small: give the container a "
                          "larger one (docker run --shm-size={}, a memory emptyDir on /dev/shm, "
                          "mount -o remount,size={} /dev/shm), or use fewer workers.",
                          size_text(facts.limit.shared_total_bytes), size, size),
              {}};
}

}  // namespace oomrec::tools::findings
