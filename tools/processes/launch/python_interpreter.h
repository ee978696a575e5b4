// The Python that runs what the command cannot do itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

// The one that `oomrec run` takes for a program in Python (launch/python.h); empty where there is
// none.
std::filesystem::path find_python();

struct PythonAnswer {
  int exit_code = 0;   // 128 + N after signal N; 127: it could not be started
  std::string output;  // of its stdout and of its stderr
  std::string errors;
};

// Runs `script` with `arguments` (sys.argv[1:]) and `input` as its stdin, and waits for its end.
// The working directory is not searched for modules.
PythonAnswer run_python(const std::filesystem::path& python, const std::string& script,
                        const std::vector<std::string>& arguments, const std::string& input);

}  // namespace oomrec::tools::processes
