// The verdicts that `oomrec simulate` can reproduce.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/processes/simulate/scenario.h"

namespace oomrec::tools::processes {

struct SimulatedKind {
  VerdictCode code;                           // the verdict in the bundle
  std::string_view how;                       // a line for --list
  std::vector<std::string> options;           // of `oomrec run`
  void (*act)();                              // runs in the recorded process
  std::optional<ScenarioCgroup> cgroup = {};  // of its scenario
};

const std::vector<SimulatedKind>& simulated_kinds();

// Throws Error with bad_input if there is no such kind.
const SimulatedKind& simulated_kind(const std::string& word);

}  // namespace oomrec::tools::processes
