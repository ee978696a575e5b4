// The rank of this process in a job of many processes, from its launcher's environment.
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

}  // namespace oomrec::recorder
