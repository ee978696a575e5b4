// Values of options that several commands have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"

namespace oomrec::tools::commands {

// The values of --space; "all" means the spaces that add up.
inline std::vector<std::string> space_choices() {
  std::vector<std::string> spaces{"all"};
  for (const std::string_view name : kSpaceNames) spaces.emplace_back(name);
  return spaces;
}

}  // namespace oomrec::tools::commands
