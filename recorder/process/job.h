// The job that this process belongs to, from its environment: its rank among many, and its labels
// (service, pod, release).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct RankFacts {
  bool known = false;  // false: ignore the three numbers
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::uint32_t world_size = 0;
  std::string_view
      job;  // points into the environment; empty: none. A job may be known without a rank
};

// By the first group of variables that counts (common/options/rank_variables.h).
RankFacts read_rank(const char* const* environment) noexcept;

// Called from start(). Reads it only once, because the program may change its environment later.
void store_rank(const char* const* environment) noexcept;
// Writes it to the header of a session that has just begun.
void describe_rank(InHook) noexcept;

inline constexpr std::size_t kProcessLabelsBytes = 4096;

// The labels in the environment's variables, as a session holds them, in `buffer`: those of
// OpenTelemetry, of OOMREC_LABELS, of launchers. Secrets are masked; a label that does not fit is
// left out.
std::string_view read_process_labels(const char* const* environment,
                                     char (&buffer)[kProcessLabelsBytes]) noexcept;

// Called from start(). Reads them only once, because the program may change its environment later.
void store_process_labels(const char* const* environment) noexcept;
// Writes them to the header of a session that has just begun.
void describe_process_labels(InHook) noexcept;

// The value of `name`, as a view of the environment itself; empty: not set. For where getenv cannot
// be called: before libc's constructors, and in other processes' environments.
inline std::string_view variable(const char* const* environment, std::string_view name) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

}  // namespace oomrec::recorder
