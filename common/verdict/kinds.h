// The table of verdicts: how each relates to memory, what to try, and its words for messages that
// quote it.
//
// A new verdict needs a name in OOMREC_VERDICTS, a row here, and code in the file of this folder
// that finds its evidence. Other C++ code reads the row.
#pragma once

#include <array>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::verdict {

// In this order: from `refused` on, memory is the reason; from `probable` on, the process died of
// it.
enum class Cause : std::uint8_t {
  alive,     // no death: a warning or a request
  other,     // another reason, or an unknown one
  refused,   // an allocation failed before
  probable,  // killed when memory was short
  certain,   // died for lack of memory: outranks an earlier failure
  kernel,    // likewise, killed by the kernel: the outcome is `oom_killed`
};

// Who ended a process that died for lack of memory.
enum class MemoryDeath : std::uint8_t {
  none,    // it lived on, as far as the verdict says, or died of something else
  itself,  // or its runtime
  killed,  // the kernel, a service, its parent
};
inline constexpr std::string_view kMemoryDeathNames[] = {{}, "itself", "killed"};

// What to try, in words by tools/findings/advice/.
enum class Remedy : std::uint8_t {
  none,  // for others than these, or another rule has it
  smaller_request,
  compare_limits,
  smaller_stacks,
  print_size,
  check_result,
  larger_machine,
  by_kernel_line,
  less_at_a_time,
  change_service,
  change_parent,
  larger_heap,
  read_worker,
  smaller_batches,
  trim_pool,
};

struct Kind {
  VerdictCode code;
  Cause cause;
  bool kept_longer;  // a bundle with this verdict outlives those without (retention.h)
  MemoryDeath death;
  Remedy remedy;            // if no limit is to be raised
  bool is_about_machine;    // its limit says nothing about what to raise
  std::string_view end;     // "train.py ended with exit code 1 …" in an alert
  std::string_view worker;  // "its worker 815 …" if the parent ended because of it; empty: never
};

// clang-format off
inline constexpr auto kKinds = std::to_array<Kind>({
  {VerdictCode::soft_limit,                Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after a refusal at its soft limit", {}},
  {VerdictCode::address_space_limit,       Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after a refusal at its limit of address space", {}},
  {VerdictCode::data_limit,                Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after a refusal at its limit of data", {}},
  {VerdictCode::request_too_large,         Cause::refused,  true,  MemoryDeath::none,   Remedy::smaller_request, true, 
   " after a request that was too large", {}},
  {VerdictCode::allocation_failed,         Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after memory was refused", {}},
  {VerdictCode::simulated,                 Cause::refused,  false, MemoryDeath::none,   Remedy::none,            false,
   " after a simulated refusal", {}},
  {VerdictCode::requested,                 Cause::alive,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::unknown,                   Cause::other,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::injected,                  Cause::other,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::thread_creation_failed,    Cause::other,    true,  MemoryDeath::none,   Remedy::smaller_stacks,  false, {}, {}},
  {VerdictCode::fork_failed,               Cause::other,    true,  MemoryDeath::none,   Remedy::smaller_stacks,  false, {}, {}},
  {VerdictCode::mapping_failed,            Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after a mapping was refused", {}},
  {VerdictCode::near_limit,                Cause::alive,    true,  MemoryDeath::none,   Remedy::less_at_a_time,  false, {}, {}},
  {VerdictCode::null_dereference,          Cause::refused,  true,  MemoryDeath::itself, Remedy::check_result,    false,
   " when it used the NULL of a refused request", "was refused memory and used the NULL it was given"},
  {VerdictCode::uncaught_bad_alloc,        Cause::refused,  true,  MemoryDeath::itself, Remedy::check_result,    false,
   " after an uncaught bad_alloc", "was refused memory and did not catch the std::bad_alloc"},
  {VerdictCode::crash_after_refusal,       Cause::refused,  true,  MemoryDeath::itself, Remedy::check_result,    false,
   " after memory was refused", "was refused memory and crashed"},
  {VerdictCode::crashed,                   Cause::other,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::cgroup_oom_kill,           Cause::kernel,   true,  MemoryDeath::killed, Remedy::larger_machine,  false,
   ": its memory cgroup was at its limit", "was killed by the kernel: their memory cgroup was full"},
  {VerdictCode::system_oom_kill,           Cause::kernel,   true,  MemoryDeath::killed, Remedy::by_kernel_line,  true, 
   ": the machine had no memory left for it", "was killed by the kernel: the machine had no memory left for them"},
  {VerdictCode::killed_near_limit,         Cause::probable, true,  MemoryDeath::killed, Remedy::larger_machine,  false,
   " near a limit of its memory", "was killed near a limit of memory"},
  {VerdictCode::terminated_under_pressure, Cause::probable, true,  MemoryDeath::killed, Remedy::less_at_a_time,  false,
   " when memory was short", "was terminated for lack of memory"},
  {VerdictCode::killed_externally,         Cause::other,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::memory_pressure,           Cause::alive,    true,  MemoryDeath::none,   Remedy::less_at_a_time,  true,  {}, {}},
  {VerdictCode::child_killed,              Cause::refused,  true,  MemoryDeath::itself, Remedy::read_worker,     false,
   " after its worker had run out of memory", {}},
  {VerdictCode::shared_memory_full,        Cause::certain,  true,  MemoryDeath::itself, Remedy::none,            false,
   " because shared memory was full", "found shared memory full"},
  {VerdictCode::exited,                    Cause::other,    false, MemoryDeath::none,   Remedy::none,            false, {}, {}},
  {VerdictCode::device_out_of_memory,      Cause::refused,  true,  MemoryDeath::none,   Remedy::smaller_batches, true, 
   " after a GPU had no memory left for it", {}},
  {VerdictCode::device_limit,              Cause::refused,  true,  MemoryDeath::none,   Remedy::smaller_batches, false,
   " after a refusal at its limit of a GPU's memory", {}},
  {VerdictCode::device_fragmentation,      Cause::refused,  true,  MemoryDeath::none,   Remedy::trim_pool,       false,
   " after a GPU had no free piece that was large enough", {}},
  {VerdictCode::exception,                 Cause::refused,  true,  MemoryDeath::none,   Remedy::print_size,      false,
   " after an exception for lack of memory", {}},
  {VerdictCode::runtime_limit,             Cause::certain,  true,  MemoryDeath::itself, Remedy::larger_heap,     true, 
   ": its runtime's own memory limit was reached", "reached its runtime's own memory limit"},
  {VerdictCode::user_space_oom_kill,       Cause::certain,  true,  MemoryDeath::killed, Remedy::change_service,  true, 
   ": a user-space OOM killer chose it", "was killed by a user-space OOM killer"},
  {VerdictCode::memory_lock_failed,        Cause::refused,  true,  MemoryDeath::none,   Remedy::compare_limits,  false,
   " after memory could not be locked", {}},
  {VerdictCode::terminated_by_parent,      Cause::probable, true,  MemoryDeath::killed, Remedy::change_parent,   false,
   " because its parent ended it when it took too much memory", "was ended by its parent for lack of memory"},
});
// clang-format on

static_assert(
    [] {
      for (std::size_t i = 0; i < kKinds.size(); ++i)
        if (kKinds[i].code != static_cast<VerdictCode>(i)) return false;
      return kKinds.size() == kVerdictNames.size();
    }(),
    "one row for each verdict, in the order of OOMREC_VERDICTS");

// An unknown code, from a newer recorder or a forged file, counts as `unknown`.
constexpr const Kind& kind_of(VerdictCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return kKinds[index < kKinds.size() ? index : static_cast<std::size_t>(VerdictCode::unknown)];
}

// Of a stored name; null: of a newer recorder, or forged.
constexpr const Kind* kind_named(std::string_view name) noexcept {
  for (const Kind& kind : kKinds)
    if (name_of(kind.code) == name) return &kind;
  return nullptr;
}

// Killed by the kernel for lack of memory: the outcome is `oom_killed`.
constexpr bool is_kernel_kill(VerdictCode code) noexcept {
  return kind_of(code).cause == Cause::kernel;
}

// A death that is reported instead of an earlier failure.
constexpr bool outranks_failure(VerdictCode code) noexcept {
  return kind_of(code).cause >= Cause::certain;
}

// A death caused by lack of memory, certainly or probably.
constexpr bool is_death_caused_by_memory(VerdictCode code) noexcept {
  return kind_of(code).cause >= Cause::probable;
}

// A death related to memory: caused by lack of it, or after a failed allocation.
constexpr bool is_death_related_to_memory(VerdictCode code) noexcept {
  return kind_of(code).cause >= Cause::refused;
}

constexpr bool is_death(VerdictCode code) noexcept { return kind_of(code).cause != Cause::alive; }

}  // namespace oomrec::verdict
