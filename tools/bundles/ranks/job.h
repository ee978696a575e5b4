// The ranks of one job: which recordings they are, whose clock they are told by, and which of them
// was in trouble first.
//
// A dump directory may hold several jobs, several attempts of one, and several processes of a rank
// (its workers inherit its number): one process stands for a rank, and those that are of one
// attempt lived at the same time.
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
  RankIdentity who;
  Source source;
  std::optional<Trouble> trouble;
  std::int64_t shift_ns = 0;  // from its wall clock to the job's
  std::uint64_t further = 0;  // other processes of the same rank, which are not looked at
  std::optional<std::uint32_t> ended_after;  // by its launcher, after this rank's trouble

  std::uint64_t realtime_of(std::uint64_t monotonic_ns) const;  // by the job's clock
  std::uint64_t trouble_ns() const;                             // likewise; it is in trouble
};

struct LeftOut {
  std::string what, why;  // a path; "it is cut short …"
};

struct Job {
  std::vector<JobRank> ranks;  // in their order, at least one
  std::string id;              // empty: it has no name
  std::uint32_t world_size = 0;
  bool numbered = false;  // no recording knew its rank: they are numbered as they were named
  std::string mark;       // that the clocks are aligned by; empty: the hosts' wall clocks
  std::vector<std::uint32_t> missing;
  std::vector<LeftOut> left_out;
  std::optional<std::size_t> first;  // in `ranks`: the first in trouble

  std::size_t hosts() const;
};

// `named`: bundles, merged ones, recordings, and directories that hold any of these. `mark`: the
// text of a mark that all ranks made at the same moment; empty: by the wall clocks. Recordings of
// dead processes that belong into a named dump directory are made bundles first. Throws Error where
// there is no rank, or one lacks the mark.
Job job_of(const std::vector<std::string>& named, const std::string& mark,
           const std::shared_ptr<const recording::CacheDirectory>& cache);

// Of ranks whose trouble is known: the first in it, and who was ended for it.
void find_first(Job& job);

// Whether the directory is no bundle itself and holds one of a rank: what is read as a job without
// being merged.
bool holds_ranks(const std::filesystem::path& directory);

std::string host_of(const recording::Recording& recording);

}  // namespace oomrec::tools::bundles
