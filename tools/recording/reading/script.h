// The script that an interpreter runs: what tells one python3.11 from another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// "train.py", a module ("torch.distributed.run"), a jar or a class, by the recorded command line.
// Empty for another program, for code in the command line (-c), and if the recording has only the
// names of options (--arguments names).
std::string script_of(const Recording&);

// The same for a program's name and its arguments, argv[0] first.
std::string script_in(std::string_view program, const std::vector<std::string>& arguments);

// Whether a program of that name runs scripts: "node", "python3.11".
bool is_script_interpreter(std::string_view program);

}  // namespace oomrec::tools::recording
