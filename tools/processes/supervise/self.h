// Runs this command again as a recorded program, for commands that make memory run out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

struct SelfRun {
  std::vector<std::string> options;  // flags of `oomrec run`
  std::vector<std::string> words;    // the command line, from the subcommand on
  Settings environment = {};         // besides ours; the options override it
  deaths::KernelLogFile kernel_log = {};
};

struct SelfEnded {
  Ended ended;
  std::vector<std::filesystem::path> dump_directories;  // of its bundles
};

// Recovers and completes its bundles, as `oomrec run` does.
SelfEnded run_self(const SelfRun& run);

}  // namespace oomrec::tools::processes
