// The variables in which launchers give a process its rank and its job's name: torchrun's, Open
// MPI's and Slurm's, in order of precedence. A group counts only if it is complete.
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
