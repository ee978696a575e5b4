#include "tools/processes/simulate/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/base/error.h"
#include "tools/bundles/store/bundles.h"
#include "tools/processes/launch/options.h"
#include "tools/processes/simulate/scenario.h"
#include "tools/processes/supervise/self.h"

namespace oomrec::tools::processes {
namespace {

// Limits of 0 keep retention from deleting bundles of real deaths for this one.
std::vector<std::string> run_options(const SimulatedKind& kind, const std::string& dump_dir) {
  std::vector<std::string> options = {"--mode",      "sampled", "--quiet",        "--children", "1",
                                      "--max-dumps", "0",       "--max-total-mb", "0"};
  if (!dump_dir.empty()) options.insert(options.end(), {"--dump-dir", dump_dir});
  options.insert(options.end(), kind.options.begin(), kind.options.end());
  return options;
}

// Empty variables are unset to the library: only the options that the kind needs are in force, and
// those that say where to write and which arguments to record.
Settings environment_of(const std::optional<Scenario>& scenario) {
  Settings environment = {{"OOMREC_SIMULATED", "1"}};
  for (const OptionRow& row : option_rows())
    if ((row.traits & kOwnRuns) == 0) environment.emplace_back(row.variable, "");
  if (!scenario) return environment;
  const Settings files = scenario->environment();
  environment.insert(environment.end(), files.begin(), files.end());
  return environment;
}

}  // namespace

std::string simulate(const SimulatedKind& kind, const std::vector<std::string>& child_words,
                     const std::string& dump_dir) {
  std::optional<Scenario> scenario;
  if (kind.cgroup) scenario.emplace(*kind.cgroup);
  const SelfEnded self = run_self({.options = run_options(kind, dump_dir),
                                   .words = child_words,
                                   .environment = environment_of(scenario),
                                   .kernel_log = scenario ? scenario->kernel_log() : ""});
  const std::vector<bundles::BundleSummary> bundles = bundles::bundles_in(self.dump_directories);
  const auto found =
      std::find_if(bundles.begin(), bundles.end(), [&](const bundles::BundleSummary& bundle) {
        return bundle.pid == static_cast<std::uint64_t>(self.ended.pid) &&
               bundle.verdict == name_of(kind.code);
      });
  if (found != bundles.end()) return found->path.string();
  throw Error{Exit::nothing_found,
              fmt::format("{} could not be reproduced here: no bundle has this verdict",
                          name_of(kind.code)),
              "Limits, a sandbox or another preloaded library may be in the way; `oomrec info` "
              "lists those in force."};
}

}  // namespace oomrec::tools::processes
