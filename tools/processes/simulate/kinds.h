// What `oomrec simulate` can make happen: one row for each verdict.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/processes/simulate/scenario.h"

namespace oomrec::tools::processes {

struct SimulatedKind {
  VerdictCode code;                         // what the bundle will say
  std::string_view how;                     // a line for --list
  std::vector<std::string> options;         // of `oomrec run`, under which it happens
  void (*act)();                            // in the recorded process: makes it happen, truly
  std::optional<StagedCgroup> cgroup = {};  // that it shall seem to be in
};

const std::vector<SimulatedKind>& simulated_kinds();

}  // namespace oomrec::tools::processes
