#include "tools/bundles/redact/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tools/base/error.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/redact/scratch_directory.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRanks = 1U << 24;

std::uint32_t number_in(const Json& row, std::string_view key, std::uint64_t otherwise) {
  return static_cast<std::uint32_t>(std::min(number_of(row, key).value_or(otherwise), kMostRanks));
}

// Takes ranks and clock shifts from the original job: without host names they cannot be determined
// again.
JobRank redacted_rank(const Json& row, const Source& own, const fs::path& bundle) {
  write_redacted(own, bundle);
  JobRank rank;
  rank.identity.rank = number_in(row, "rank", 0);
  rank.identity.local_rank = number_in(row, "local_rank", rank.identity.rank);
  rank.source = open_recorded(bundle, own.cache);
  rank.failure = rank_failure_of(rank.source);
  const Json& shift = member(row, "shift_seconds");
  rank.shift_ns = shift.is_number() ? std::llround(shift.get<double>() * 1e9) : 0;
  rank.other_processes = number_of(row, "further_processes").value_or(0);
  return rank;
}

std::vector<std::uint32_t> missing_of(const Job& job) {
  std::set<std::uint32_t> present;
  for (const JobRank& rank : job.ranks) present.insert(rank.identity.rank);
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < job.world_size; ++rank)
    if (!present.contains(rank)) missing.push_back(rank);
  return missing;
}

}  // namespace

void write_redacted_job(const Source& source, const fs::path& to) {
  const ScratchDirectory scratch;
  Job job;
  job.world_size = number_in(source.ranks, "world_size", 0);
  job.numbered = text_of(source.ranks, "ranks_are") == "as_named";
  if (text_of(member(source.ranks, "clock"), "aligned_by") == "mark") job.mark = "…";
  for_each_rank(source, [&](const Json& row, const Source& own) {
    const fs::path bundle = scratch.path() / std::to_string(job.ranks.size());
    job.ranks.push_back(redacted_rank(row, own, bundle));
  });
  if (job.ranks.empty())
    throw Error{Exit::bad_input, "none of its ranks' bundles can be read",
                "Were they deleted? `oomrec show` lists them."};
  job.missing = missing_of(job);
  find_first_failure(job);
  write_merged(job, to, {{kRedactedName, redacted_note()}});
}

}  // namespace oomrec::tools::bundles
