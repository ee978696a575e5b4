// The rank of a process in its job, from environment variables: RANK, LOCAL_RANK and WORLD_SIZE
// (torchrun), else those of Open MPI or Slurm.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools::formats {

struct RankTags {
  std::optional<std::string> job_id;
  std::optional<std::int64_t> rank, local_rank, world_size;  // ranks < world_size
};

// Returns the value of a variable; nothing: not set.
using Variables = std::function<std::optional<std::string>(std::string_view)>;

// Skips a group of variables that is incomplete or inconsistent, and tries the next.
RankTags rank_of(const Variables& variables);

// If rank_of() finds no rank: the first group that has a rank and a world size, but is
// inconsistent, as "RANK=7, LOCAL_RANK=0, WORLD_SIZE=4". Empty: none.
std::string inconsistent_rank(const Variables& variables);

// `found`, overridden by the values in `overrides`. Throws Error with bad_input if the result is
// inconsistent.
RankTags with_overrides(const RankTags& found, const RankTags& overrides);

Variables own_variables();
Variables variables_of_process(int pid);  // empty if the process's environment cannot be read

}  // namespace oomrec::tools::formats
