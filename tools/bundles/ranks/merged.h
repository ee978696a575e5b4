// Merged bundles: a job's sums in the files of an ordinary bundle, with the complete bundle of each
// rank inside.
//
//   manifest.json, metadata.json, symbols.json, recording.oomrec   as in any bundle, for the job
//   ranks.json      the ranks, their clocks, the first that failed, the missing ones
//   ranks/3/        the bundle of rank 3
//
// Every command reads it like any bundle; --rank N reads the bundle of rank N.
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

// Creates the directory `to`, which must not exist yet. `more`: additional JSON files, by name.
// Throws Error, for example if a rank's bundle cannot be copied, and then removes what it wrote.
void write_merged(const Job& job, const std::filesystem::path& to,
                  const std::map<std::string, Json>& more = {});

// Merges a job in memory, as a source of the reading commands. `directory`: the one with the ranks'
// bundles.
Source merged_source(const Job& job, const std::filesystem::path& directory);

// Calls visit(row of ranks.json, the rank's own source) for each rank whose bundle can be read.
void for_each_rank(const Source& merged, const std::function<void(const Json&, const Source&)>&);

// The bundle of one rank. Throws Error if there is none.
std::filesystem::path bundle_of_rank(const Source& merged, std::uint32_t rank);

// Copies a bundle that others wrote into one of our own.

// Copies the regular files and directories of `from` to `to`, which must not exist yet, and leaves
// out anything else. `from` itself may be a link. Opens each entry relative to its directory's
// descriptor, without following links, and checks it after that: another user who exchanges a file
// for a link during the copy cannot redirect it. Throws std::system_error.
void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
