// The variables in which launchers give a process its rank and its job's name: torchrun's, Open
// MPI's and Slurm's, in order of precedence; and the rule by which a group of them counts. The
// Python package has the same rule for trackers: gpumemprof/_ranks.py.
#pragma once

#include <cstdint>
#include <optional>
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

struct LauncherRank {
  std::uint32_t rank, local_rank, world_size;
};

// A whole number below 2^31, in digits and nothing else.
constexpr std::optional<std::uint32_t> rank_number(std::string_view text) noexcept {
  if (text.empty() || text.size() > 10) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (value > INT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

// The rank by the values of a group; "" for a variable that is not set. A local rank that is not
// set is the rank, as in a job on one machine. Nothing: the group is incomplete, or inconsistent:
// both ranks must be below the world's size.
constexpr std::optional<LauncherRank> launcher_rank(std::string_view rank,
                                                    std::string_view local_rank,
                                                    std::string_view world_size) noexcept {
  const auto number = rank_number(rank);
  const auto local = rank_number(local_rank.empty() ? rank : local_rank);
  const auto world = rank_number(world_size);
  if (!number || !local || !world || *number >= *world || *local >= *world) return std::nullopt;
  return LauncherRank{*number, *local, *world};
}

}  // namespace oomrec
