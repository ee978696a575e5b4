// A merged bundle: the bundles of a job's ranks in one, each whole, with what they come to
// together.
//
//   manifest.json, metadata.json, symbols.json, recording.oomrec   as in any bundle, of all ranks
//   ranks.json      who they are, whose clock, who was in trouble first, who is missing
//   ranks/3/        the bundle of rank 3
//
// So every command reads it as it reads a bundle, and who asks for a rank finds its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "tools/bundles/ranks/job.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// Whether the directory is a merged bundle.
bool is_merged(const std::filesystem::path& bundle);

// Makes the directory `to`, which must not be there yet. `more`: files of its own, by name. Throws
// Error, also where a rank's bundle cannot be copied; then nothing is left of it.
void write_merged(const Job& job, const std::filesystem::path& to,
                  const std::map<std::string, Json>& more = {});

// A job as a source of the reading commands, without a bundle of its own. `directory`: where it was
// found.
Source merged_source(const Job& job, const std::filesystem::path& directory);

// visit(row of ranks.json, the rank's own source) for each whose bundle can be read.
void for_each_rank(const Source& merged, const std::function<void(const Json&, const Source&)>&);

// The bundle of one rank. Throws Error where there is none.
std::filesystem::path bundle_of_rank(const Source& merged, std::uint32_t rank);

}  // namespace oomrec::tools::bundles
