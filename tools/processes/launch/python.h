// Programs in Python, named as python itself takes them.
#pragma once

#include <string>
#include <vector>

namespace oomrec::tools::processes {

// `train.py …`, `-m module …` and `-c code …` with the interpreter before them; other words as they
// are. The interpreter is $OOMREC_PYTHON (set by `python -m oomrec`), else the python3 beside this
// command, as in a virtual environment, else that of the PATH. A file is looked for here, then in
// the PATH; throws Error as find_program() does when it is nowhere.
std::vector<std::string> with_interpreter(std::vector<std::string> words);

// The words that begin such a program and look like options.
inline constexpr const char* kPythonOptions[] = {"-m", "-c"};

// Names the interpreter for this run alone: what the program starts chooses its own.
inline constexpr const char* kPythonVariable = "OOMREC_PYTHON";

}  // namespace oomrec::tools::processes
