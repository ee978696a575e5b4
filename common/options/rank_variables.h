// The variables by which launchers tell a process which rank it is, and the job's name: torchrun's,
// Open MPI's, Slurm's, in the order in which they count. A group counts when it is whole.
#pragma once

#include <string_view>

namespace oomrec {

struct RankVariables {
  std::string_view rank, local_rank, world_size;
};
inline constexpr RankVariables kRankVariables[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};
inline constexpr std::string_view kJobVariables[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"};

}  // namespace oomrec
