// What `oomrec run` does when its program has ended: it alone knows how.
#pragma once

#include <string>
#include <vector>

#include "common/options/options.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

struct Launched {
  const std::string& path;
  const std::vector<std::string>& words;
  const Settings& settings;
  const Options& options;
};

// Completes the outcome of the bundles that the program wrote, makes one of the recording that it
// left if it was killed, and says so; says also when a limit kept it from reaching its main. Never
// fails: the program's exit code is what counts. `watched`: the same end, as it was watched.
void tell_the_end(const Ended& ended, const deaths::Watched& watched,
                  const Launched& launched) noexcept;

}  // namespace oomrec::tools::processes
