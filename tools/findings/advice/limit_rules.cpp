// The limit to raise and to which value: the last resort for each verdict about memory.
//
// A value is what the process is known to have needed at once (its peak and the failed request),
// plus a quarter. A process killed at a limit never showed what it needs: its value is half as much
// again, and the sentence says that it is a guess. Of a program that grows, the sentence says first
// that no value suffices.
#include "tools/findings/advice/limit_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/system/units.h"
#include "common/verdict/kinds.h"
#include "tools/base/text.h"
#include "tools/findings/advice/heap_limit.h"

namespace oomrec::tools::findings {
namespace {

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
    return fmt::format("It {} its limit of {}, so how much it needs is not known",
                       facts.verdict == VerdictCode::near_limit ? "is near" : "ended at",
                       size_text(facts.limit.limit));
  }
  return fmt::format("It needed at least {} at once", size_text(needed_bytes(facts)));
}

// What precedes a higher value: one that only delays the end, or hides a mistake, is no remedy.
std::string reason_text(const AdviceFacts& facts) {
  const std::string growth = growth_text(facts);
  if (!growth.empty()) {
    return fmt::format(
        "{}, and it {}: if that goes on, a higher limit only delays the end. To gain time",
        evidence_text(facts), growth);
  }
  return is_need_unknown(facts) ? evidence_text(facts)
                                : evidence_text(facts) + ". If it is meant to hold that much";
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
  return fmt::format("{}: {}.", reason_text(facts),
                     fmt::format(fmt::runtime(knob.advice), value_text(bytes), bytes / kKiB,
                                 (bytes + kHugePage - 1) / kHugePage)) +
         heap_in_cgroup_text(facts) + others_text(facts);
}

}  // namespace

std::optional<Hint> raise_limit(const AdviceFacts& facts) {
  const ActionText text = action_for(facts.verdict);
  if (text == nullptr) return {};
  const auto knob = std::ranges::find_if(kKnobs, [&](const Knob& row) {
    return row.kind == facts.limit.kind && facts.limit.limit != 0;
  });
  if (knob != std::end(kKnobs) && !verdict::kind_of(facts.verdict).is_about_machine) {
    return Hint{
        {}, is_count_limit(knob->kind) ? counted_text(facts, *knob) : bytes_text(facts, *knob), {}};
  }
  return Hint{{}, text(facts), {}};
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

// Files in memory count for the cgroup as long as they exist, whoever has written them.
std::optional<Hint> delete_shared_files(const AdviceFacts& facts) {
  constexpr std::uint64_t kNotablePart = 4;
  const std::uint64_t bytes = facts.limit.unmapped_shared_bytes;
  if (facts.limit.cgroup_bytes == 0 || bytes < facts.limit.cgroup_bytes / kNotablePart) return {};
  return Hint{{},
              fmt::format("{} of its cgroup's {} are files in memory that it does not map "
                          "(/dev/shm, another tmpfs, memfds): they count until they are deleted "
                          "and closed. Write them to a directory on a disk, delete them earlier, "
                          "or bound the file system (mount -o size=, emptyDir with sizeLimit).",
                          size_text(bytes), size_text(facts.limit.cgroup_bytes)),
              {}};
}

std::uint64_t with_quarter(std::uint64_t value) { return value + value / 4; }

std::uint64_t rounded(std::uint64_t bytes) {
  const std::uint64_t step = std::max(std::bit_floor(std::max(bytes, kMiB)) / 8, kMiB);
  return (bytes + step - 1) / step * step;
}

std::string value_text(std::uint64_t bytes) {
  return bytes % kGiB == 0 ? fmt::format("{}G", bytes / kGiB) : fmt::format("{}M", bytes / kMiB);
}

std::uint64_t needed_bytes(const AdviceFacts& facts) {
  const std::uint64_t used = is_count_limit(facts.limit.kind) ? 0 : facts.limit.used;
  return std::max(used, facts.limit.peak_bytes) + facts.request_bytes;
}

std::string growth_text(const AdviceFacts& facts) {
  const auto growing = std::ranges::find_if(
      facts.held, [](const SubjectFigures& held) { return held.growth.has_value(); });
  if (growing == facts.held.end() || growing->growth->bytes_per_second < 1) return {};
  const Growth& growth = *growing->growth;
  if (growth.window_seconds < 60)
    return fmt::format("grew by {} in {}", size_text(static_cast<std::uint64_t>(growth.bytes)),
                       duration_text(growth.window_seconds));
  const double per_minute = growth.bytes_per_second * 60;
  return fmt::format("grew by {} a minute", size_text(static_cast<std::uint64_t>(per_minute)));
}

std::string trend_text(const AdviceFacts& facts) {
  const std::string growth = growth_text(facts);
  if (growth.empty()) return {};
  return fmt::format(" It {}: if that goes on, a higher limit only delays the end.", growth);
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

}  // namespace oomrec::tools::findings
