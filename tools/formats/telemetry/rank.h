// Which process of a distributed job it is: RANK, LOCAL_RANK and WORLD_SIZE (torchrun), else what
// Open MPI or Slurm set.
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

// The value of a variable; nothing where it is not set.
using Variables = std::function<std::optional<std::string>(std::string_view)>;

// Of a group of variables that is incomplete, or makes no sense, the next is tried.
RankTags rank_of(const Variables& variables);

// Where that is none, the first group that names a rank and a world all the same: "RANK=7,
// LOCAL_RANK=0, WORLD_SIZE=4". Empty: there is none.
std::string senseless_rank(const Variables& variables);

// As `given` says, and where it does not, as `found` does. Throws Error with bad_input where the
// result contradicts itself.
RankTags with_given(const RankTags& found, const RankTags& given);

Variables own_variables();
Variables variables_of_process(int pid);  // none where they may not be read

}  // namespace oomrec::tools::formats
