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
      job;  // in the environment itself; empty: none. A job may be known without a rank
};

// From RANK, LOCAL_RANK and WORLD_SIZE, else Open MPI's three, else Slurm's: the first group that
// is complete and makes sense (both ranks below the world's size).
RankFacts read_rank(const char* const* environment) noexcept;

// From start(): read once, as the program may change its environment at any time.
void store_rank(const char* const* environment) noexcept;
// Enters it in the header of a session that has just begun.
void describe_rank(InHook) noexcept;

}  // namespace oomrec::recorder
