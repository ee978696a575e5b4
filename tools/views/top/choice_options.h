// The options of `oomrec top` that choose what the live view shows at first.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tools/base/arguments.h"
#include "tools/views/top/table.h"

namespace oomrec::tools::views {

struct ChoiceOptions {
  std::string by = "stack", sort = "own", frames = "python", space = "all";

  void add_to(Arguments& arguments) {
    const auto words = [](const auto& names) {
      return std::vector<std::string>(std::begin(names), std::end(names));
    };
    std::vector<std::string> spaces = words(kSpaceNames);
    spaces.insert(spaces.begin(), "all");
    arguments.choice("--by", "WHAT", by, words(kByNames), "what a row is (stack)");
    arguments.choice("--sort", "FIGURE", sort, words(kSortNames), "sort by, largest first (own)");
    arguments.choice("--frames", "KIND", frames, words(recording::kFramesNames),
                     "which frames count in a stack that runs Python (python; both with --json)");
    arguments.choice("--space", "SPACE", space, spaces,
                     "which memory to count (all: the spaces that add up)");
  }

  Choice choice() const {
    const auto index = [](const auto& names, const std::string& word) {
      return std::ranges::find(names, word) - std::begin(names);
    };
    Choice choice;
    choice.by = static_cast<By>(index(kByNames, by));
    choice.sort = static_cast<SortBy>(index(kSortNames, sort));
    choice.frames = recording::frames_named(frames);
    if (space != "all") choice.space = static_cast<Space>(index(kSpaceNames, space));
    return choice;
  }
};

}  // namespace oomrec::tools::views
