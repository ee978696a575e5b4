// Facts for `oomrec info`: about a program, by starting it with the recorder up to its main, and
// about the limits that it would run under.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/processes/launch/options.h"

namespace oomrec::tools::processes {

// One line that the library reports about itself in the program.
struct Fact {
  std::string name;
  std::optional<bool> active;
  std::string detail;
};

// Starts the program with the recorder, which ends it before its main. Empty: the recorder was not
// loaded.
std::vector<Fact> facts_of(const std::string& path, const std::vector<std::string>& words,
                           const Settings& settings);

// "Python 3.11.7: its stacks are read", or why they are not; empty if the program is not Python.
std::string python_support(const std::vector<Fact>& facts);

struct SystemLimit {
  std::string name;
  std::uint64_t bytes;
};
// In force for this process and its children: RLIMIT_AS, RLIMIT_DATA, cgroup.
std::vector<SystemLimit> limits_in_force();

}  // namespace oomrec::tools::processes
