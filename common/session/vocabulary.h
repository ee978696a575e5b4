// The vocabulary of oomrec: spaces, event kinds, triggers, verdicts. Functions are in functions.h.
//
// An enumerator is spelled as it is printed. Recordings contain the values: append, never renumber.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace oomrec {

// The kinds of memory.
// clang-format off
#define OOMREC_SPACES(X) X(heap) X(map) X(cuda) X(cuda_host) X(cuda_va) X(hip) X(hip_host) X(hip_va) X(torch) \
  X(python)

#define OOMREC_EVENT_KINDS(X) X(none) X(allocate) X(free) X(map) X(unmap) X(remap) X(fail) X(mark)

// Why a bundle is written.
#define OOMREC_TRIGGERS(X) \
  X(none) X(allocation_failed) X(soft_limit) X(near_limit) X(pressure) X(crash) X(killed) \
  X(exception) X(request) X(simulated)

// What happened to the process after the trigger.
#define OOMREC_OUTCOMES(X) X(running) X(recovered) X(exited) X(signal) X(oom_killed) X(unknown)

// The conclusion from the evidence: see common/verdict/verdict.h and docs/deaths.md.
#define OOMREC_VERDICTS(X) \
  X(soft_limit) X(address_space_limit) X(data_limit) X(request_too_large) X(allocation_failed) \
  X(simulated) X(requested) X(unknown) \
  X(injected) X(thread_creation_failed) X(fork_failed) X(mapping_failed) X(near_limit) \
  X(null_dereference) X(uncaught_bad_alloc) X(crash_after_refusal) X(crashed) \
  X(cgroup_oom_kill) X(system_oom_kill) X(killed_near_limit) X(terminated_under_pressure) \
  X(killed_externally) X(memory_pressure) X(child_killed) X(shared_memory_full) X(exited) \
  X(device_out_of_memory) X(device_limit) X(device_fragmentation) X(exception) \
  X(runtime_limit) X(user_space_oom_kill) X(memory_lock_failed) X(terminated_by_parent)

// How far the evidence carries a verdict. possible: it does not contradict it, nor does it exclude
// another cause. likely: it points to this cause and to no other. proven: it names the cause (the
// kernel's line about the process, the failed call's own result, an address that derives from it).
#define OOMREC_CERTAINTIES(X) X(possible) X(likely) X(proven)

// The limit that failed a request, or would fail the next one. From rlimit_nproc to max_map_count:
// is_count_limit().
#define OOMREC_LIMIT_KINDS(X) \
  X(none) X(soft) X(rlimit_as) X(rlimit_data) X(cgroup) X(device) X(commit) \
  X(rlimit_nproc) X(pids) X(threads_max) X(pid_max) X(max_map_count) \
  X(memlock) X(hugetlb)

#define OOMREC_MODES(X) X(off) X(sampled) X(exact)

// clang-format on

#define X(name) name,
enum class Space : std::uint8_t { OOMREC_SPACES(X) };
enum class EventKind : std::uint8_t { OOMREC_EVENT_KINDS(X) };
enum class Trigger : std::uint8_t { OOMREC_TRIGGERS(X) };
enum class OutcomeKind : std::uint8_t { OOMREC_OUTCOMES(X) };
enum class VerdictCode : std::uint8_t { OOMREC_VERDICTS(X) };
enum class Certainty : std::uint8_t { OOMREC_CERTAINTIES(X) };
enum class LimitKind : std::uint8_t { OOMREC_LIMIT_KINDS(X) };
enum class Mode : std::uint8_t { OOMREC_MODES(X) };
#undef X

#define X(name) std::string_view{#name},
inline constexpr auto kSpaceNames = std::to_array<std::string_view>({OOMREC_SPACES(X)});
inline constexpr auto kEventKindNames = std::to_array<std::string_view>({OOMREC_EVENT_KINDS(X)});
inline constexpr auto kTriggerNames = std::to_array<std::string_view>({OOMREC_TRIGGERS(X)});
inline constexpr auto kOutcomeNames = std::to_array<std::string_view>({OOMREC_OUTCOMES(X)});
inline constexpr auto kVerdictNames = std::to_array<std::string_view>({OOMREC_VERDICTS(X)});
inline constexpr auto kCertaintyNames = std::to_array<std::string_view>({OOMREC_CERTAINTIES(X)});
inline constexpr auto kLimitKindNames = std::to_array<std::string_view>({OOMREC_LIMIT_KINDS(X)});
inline constexpr auto kModeNames = std::to_array<std::string_view>({OOMREC_MODES(X)});
#undef X

// The printed name of an enumerator; "unknown" for a value from a newer or forged recording.
constexpr std::string_view name_of(const auto& names, auto value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() && !names[index].empty() ? names[index] : std::string_view{"unknown"};
}
constexpr std::string_view name_of(Space v) noexcept { return name_of(kSpaceNames, v); }
constexpr std::string_view name_of(EventKind v) noexcept { return name_of(kEventKindNames, v); }
constexpr std::string_view name_of(Trigger v) noexcept { return name_of(kTriggerNames, v); }
constexpr std::string_view name_of(OutcomeKind v) noexcept { return name_of(kOutcomeNames, v); }
constexpr std::string_view name_of(VerdictCode v) noexcept { return name_of(kVerdictNames, v); }
constexpr std::string_view name_of(Certainty v) noexcept { return name_of(kCertaintyNames, v); }
constexpr std::string_view name_of(LimitKind v) noexcept { return name_of(kLimitKindNames, v); }
constexpr std::string_view name_of(Mode v) noexcept { return name_of(kModeNames, v); }

// The value with this name in a table such as kVerdictNames; empty for other words.
template <class Value>
constexpr std::optional<Value> value_named(const auto& names, std::string_view word) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == word && !word.empty()) return static_cast<Value>(i);
  return std::nullopt;
}

// A space of a GPU, or of a framework that subdivides a GPU's memory.
constexpr bool is_device_space(Space space) noexcept {
  return space >= Space::cuda && space != Space::python;
}

// Host memory, whatever allocated it.
constexpr bool is_on_host(Space space) noexcept {
  return space == Space::heap || space == Space::map || space == Space::cuda_host ||
         space == Space::hip_host || space == Space::python;
}

// Address space of a GPU, or imported memory: neither uses memory of its own.
constexpr bool is_address_space(Space space) noexcept {
  return space == Space::cuda_va || space == Space::hip_va;
}

// Whether the space may be added to others: not for address space, nor for a subdivision of another
// space (`torch` is part of `cuda`, `hip` or `heap`).
constexpr bool is_additive(Space space) noexcept {
  return !is_address_space(space) && space != Space::torch;
}

// The space whose peak is that of a holder in `space`: objects of Python lie in mapped memory.
constexpr Space peak_space_of(Space space) noexcept {
  return space == Space::python ? Space::map : space;
}

// Whether the space has totals of its own. Objects of Python lie in mapped memory, and are counted
// there: only their holders are known.
constexpr bool has_totals(Space space) noexcept { return space != Space::python; }

// Whether the limit is on a number of tasks or mappings, not on bytes.
constexpr bool is_count_limit(LimitKind kind) noexcept {
  return kind >= LimitKind::rlimit_nproc && kind <= LimitKind::max_map_count;
}

inline constexpr std::size_t kSpaceCount = kSpaceNames.size();

}  // namespace oomrec
