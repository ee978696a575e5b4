// The steps at which a test kills the command (tests/integration/attach_dies.cpp, a command with
// another definition of this function).
#pragma once

#include <string_view>

namespace oomrec::tools::processes {

void reach_step(std::string_view step);

}  // namespace oomrec::tools::processes
