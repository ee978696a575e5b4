// The death of a program that the recorder could not be loaded into: why it was not, and the
// report of `oomrec run`.
//
// Its bundle has a recording that says who died and why nothing else is known: no stacks, no
// holders. Every command reads it like any other bundle.
#pragma once

#include <filesystem>
#include <string>

#include "common/options/options.h"
#include "tools/deaths/death_observer.h"
#include "tools/processes/supervise/program_facts.h"

namespace oomrec::tools::processes {

struct UnrecordedDeath {
  std::filesystem::path bundle;  // empty: none was worth it, or could be written
  std::string line;              // for the terminal; empty: nothing worth a line
  std::string problem;           // why the bundle could not be written
};

// Writes a bundle of a program that was killed for lack of memory, or that another signal than
// Ctrl-C's ended while it was large. A kill or a crash is always worth a line.
UnrecordedDeath report_unrecorded(const ProgramFacts& facts,
                                  const deaths::DeathObservation& observed, const Options& options);

}  // namespace oomrec::tools::processes
