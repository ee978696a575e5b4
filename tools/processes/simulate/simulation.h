// Runs a process that dies of a kind, and finds its bundle.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/processes/simulate/scenario.h"

namespace oomrec::tools::processes {

// The verdicts that `oomrec simulate` can reproduce.
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

// `child_words`: the command line that calls kind.act(), without the program. `dump_dir`: empty is
// the default. Returns the bundle's path; throws Error with nothing_found if no bundle has the
// verdict.
std::string simulate(const SimulatedKind& kind, const std::vector<std::string>& child_words,
                     const std::string& dump_dir);

}  // namespace oomrec::tools::processes
