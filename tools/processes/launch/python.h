// Python: programs on the command line of `oomrec run`, and the command's own scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/programs.h"

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

// The interpreter that `oomrec run` uses for a Python program (launch/python.h); empty if not
// found.
std::filesystem::path find_python();

// Runs `script` with `arguments` (sys.argv[1:]) and `input` as its stdin, and waits for its end. It
// does not import modules from the working directory.
ProgramResult run_python(const std::filesystem::path& python, const std::string& script,
                         const std::vector<std::string>& arguments, const std::string& input);

}  // namespace oomrec::tools::processes
