// Which piece of a larger job a process is: one of torchrun's, mpirun's or srun's ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

struct RankIdentity {
  std::uint32_t rank = 0, local_rank = 0, world_size = 0;  // ranks < world_size
  std::string job;                                         // empty: it has no name
};

// As the recording has it; else the bundle's manifest; else, of recordings older than both, the
// environment that the bundle tells of. Nothing: it is none of many, or says only in part which.
std::optional<RankIdentity> rank_of(const Source& source);

// The same of a bundle whose recording cannot be read.
std::optional<RankIdentity> rank_of_bundle(const std::filesystem::path& bundle);

// Of a bundle that knows no rank, what its launcher's variables said of one all the same; empty:
// nothing. See senseless_rank() (tools/formats/telemetry/rank.h).
std::string senseless_rank_of(const Source& source);

// By variables of an environment.json's member `environment`.
std::optional<RankIdentity> rank_in(const Json& environment);

}  // namespace oomrec::tools::bundles
