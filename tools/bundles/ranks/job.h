// Finds the ranks of one job: their recordings, a common clock, and which rank ran short of memory
// first.
//
// A dump directory may contain several jobs, several attempts of a job, and several processes of
// one rank, because workers inherit its number. One process represents a rank. The processes of one
// attempt are those that were alive at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/ranks/identity.h"
#include "tools/bundles/ranks/rank_failures.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

struct JobRank {
  RankIdentity identity;
  Source source;
  std::optional<RankFailure> failure;
  std::int64_t shift_ns = 0;                 // from its wall clock to the job's
  std::uint64_t other_processes = 0;         // of the same rank; they are ignored
  std::optional<std::uint32_t> ended_after;  // rank whose failure made the launcher end this one

  std::uint64_t realtime_of(std::uint64_t monotonic_ns) const;  // on the job's clock
  std::uint64_t failure_ns() const;  // of `failure`, which must exist; on the job's clock
};

struct LeftOut {
  std::string what, why;  // a path or a rank; the reason: "it is cut short …"
};

struct Job {
  std::vector<JobRank> ranks;  // in their order, at least one
  std::string id;              // empty: unknown
  std::uint32_t world_size = 0;
  bool numbered = false;  // no recording has a rank: numbered in the order of the arguments
  std::string mark;       // that aligns the clocks; empty: the hosts' wall clocks are used
  std::vector<std::uint32_t> missing;
  std::vector<LeftOut> left_out;
  std::optional<std::size_t> first;  // index in `ranks`: the first to fail; empty: none did

  std::size_t hosts() const;
};

// `named`: bundles, merged bundles, recordings, and directories with any of these. Recovers the
// orphans of those directories first. `mark`: the text of a mark that all ranks made at the same
// moment; empty: trust the wall clocks. Throws Error if there is no rank, or one lacks the mark.
Job job_of(const std::vector<std::string>& named, const std::string& mark,
           const std::shared_ptr<const recording::CacheDirectory>& cache);

// Sets Job::first, and `ended_after` of the ranks that the launcher ended for it. The ranks'
// failures must be set.
void find_first_failure(Job& job);

// Whether the directory contains a rank's bundle and is not itself a bundle. Commands read it as a
// job, without a merge.
bool holds_ranks(const std::filesystem::path& directory);

std::string host_of(const recording::Recording& recording);

}  // namespace oomrec::tools::bundles
