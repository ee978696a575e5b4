// Which rank of a distributed job a process is, as torchrun, mpirun or srun numbered it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

struct RankIdentity {
  std::uint32_t rank = 0, local_rank = 0, world_size = 0;  // ranks < world_size
  std::string job;                                         // empty: unknown
};

// From the recording; else from the bundle's manifest; else, for recordings older than both, from
// the environment in the bundle. Empty if the process is not a rank, or its numbers are incomplete.
std::optional<RankIdentity> rank_of(const Source& source);

// The same for a bundle whose recording cannot be read.
std::optional<RankIdentity> rank_of_bundle(const std::filesystem::path& bundle);

// For a bundle without a rank: the launcher's variables that are incomplete or contradict each
// other; empty: none. See inconsistent_rank() (tools/formats/telemetry/rank.h).
std::string inconsistent_rank_of(const Source& source);

// From the member `environment` of an environment.json.
std::optional<RankIdentity> rank_in(const Json& environment);

}  // namespace oomrec::tools::bundles
