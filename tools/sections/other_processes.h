// What happened beside a bundle: the other processes of its tree and of its cgroup, and the other
// bundles of its episode.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

// A bundle's processes.json, updated with the outcomes and bundles that members of the tree got
// later. Nobody in the tree: the bundle has no such file, or a broken one.
bundles::Processes related_processes(const bundles::Source&);

// The members "processes" and "others"; null: not known.
Json tree_json(const bundles::Processes&);
Json others_json(const bundles::Processes&);

// Lines of the process tree: the process itself, then the others by live bytes. Empty if it is
// alone. `full`: every process.
std::string tree_text(const bundles::Processes&, bool full);

// Lines of the cgroup's other processes. Empty unless they may be a cause: the cgroup has a limit,
// or the process died of memory.
std::string others_text(const bundles::Processes&, const bundles::Source&, const verdict::Verdict&);

// The episode that a bundle belongs to: the bundles beside it that tell of the same.
struct Episode {
  std::vector<bundles::BundleSummary>
      bundles;                 // as bundles_in() returns them, with the bundle itself
  std::string root;            // the name of the bundle that tells the cause
  bundle::EpisodeRole role{};  // of the bundle
  std::string job_outcome;  // how the process ended that the root's death ended; empty: not known
};
// Nothing for a recording without a bundle, and for a merged one.
std::optional<Episode> episode_of(const bundles::Source&);

// {"root", "role", "bundles": [{"bundle", "role", "verdict", "outcome"}…], "job_outcome"}, or null.
Json episode_json(const std::optional<Episode>&);

// Lines of the other bundles; empty if there are none.
std::string episode_text(const Episode&, const bundles::Source&);

// "its job ended with exit status 1"; empty: not known.
std::string job_outcome_text(const Episode&);

}  // namespace oomrec::tools::sections
