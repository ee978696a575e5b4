// Python programs on the command line of `oomrec run`.
#pragma once

#include <string>
#include <vector>

namespace oomrec::tools::processes {

// Puts the interpreter before `train.py …`, `-m module …` and `-c code …`; other words are
// unchanged. The interpreter is $OOMREC_PYTHON (set by `python -m oomrec`), else the python3 beside
// this command, as in a virtual environment, else that of the PATH. Searches a file in the working
// directory, then in the PATH; throws Error as find_program() does.
std::vector<std::string> with_interpreter(std::vector<std::string> words);

// The options that start such a program.
inline constexpr const char* kPythonOptions[] = {"-m", "-c"};

// Names the interpreter for this run only: it is unset for the program.
inline constexpr const char* kPythonVariable = "OOMREC_PYTHON";

}  // namespace oomrec::tools::processes
