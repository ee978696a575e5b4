// Runs the command's own Python scripts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

// The interpreter that `oomrec run` uses for a Python program (launch/python.h); empty if not
// found.
std::filesystem::path find_python();

struct PythonResult {
  int exit_code = 0;   // 128 + N after signal N; 127: it could not be started
  std::string output;  // its stdout
  std::string errors;  // its stderr
};

// Runs `script` with `arguments` (sys.argv[1:]) and `input` as its stdin, and waits for its end. It
// does not import modules from the working directory.
PythonResult run_python(const std::filesystem::path& python, const std::string& script,
                        const std::vector<std::string>& arguments, const std::string& input);

}  // namespace oomrec::tools::processes
