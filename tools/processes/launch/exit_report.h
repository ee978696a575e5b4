// The work of `oomrec run` after its program has ended: completes bundles, recovers recordings and
// reports both.
#pragma once

#include <string>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/process.h"
#include "tools/processes/launch/program_facts.h"

namespace oomrec::tools::processes {

struct Launched {
  const std::string& path;
  const std::vector<std::string>& words;
  const Settings& settings;
  const Options& options;
  const ProgramFacts& facts;
  const Descendants& descendants;
};

// Completes the program's bundles with its outcome. If it was killed, makes and reports a bundle of
// its recording, or one without events if it has no recording. Says in one line what ended each
// process that died for lack of memory. Also reports a limit too low to reach main. Never fails:
// the program's exit code must be returned. `observed`: what the observer recorded of the same end.
void report_exit(const Ended& ended, const deaths::DeathObservation& observed,
                 const Launched& launched) noexcept;

}  // namespace oomrec::tools::processes
