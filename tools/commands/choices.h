// Values of options that several commands have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/arguments.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::commands {

// The values of --space; "all" means the spaces that add up.
inline std::vector<std::string> space_choices() {
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  return spaces;
}

// --frames, for commands that show stacks. `unset`: what it is if it is not given.
inline void add_frames_choice(Arguments& arguments, std::string& frames, const std::string& unset) {
  arguments.choice("--frames", "KIND", frames,
                   {recording::kFramesNames.begin(), recording::kFramesNames.end()},
                   "which frames count in a stack that runs Python (" + unset + ")");
}

}  // namespace oomrec::tools::commands
