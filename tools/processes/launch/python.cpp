#include "tools/processes/launch/python.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

std::string interpreter() {
  if (std::string named = environment_variable(kPythonVariable); !named.empty()) return named;
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).replace_filename("python3");
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

}  // namespace

std::vector<std::string> with_interpreter(std::vector<std::string> words) {
  if (words.empty()) return words;
  const std::string& first = words.front();
  const bool is_option = std::ranges::find(kPythonOptions, first) != std::end(kPythonOptions);
  if (!is_option && !first.ends_with(".py")) return words;
  std::error_code ignored;
  if (!is_option && !fs::exists(first, ignored)) words.front() = find_program(first);
  words.insert(words.begin(), interpreter());
  return words;
}

fs::path find_python() {
  try {
    return find_program(with_interpreter({"-c"}).front());
  } catch (const Error&) {
    return {};
  }
}

ProgramResult run_python(const fs::path& python, const std::string& script,
                         const std::vector<std::string>& arguments, const std::string& input) {
  // `-c` searches the working directory first, where a json.py would replace Python's. The script
  // is a separate argument because its imports from __future__ must come first. What it draws is as
  // private as the recording.
  constexpr const char* kRun =
      "import posix, sys; posix.umask(0o77); sys.path[:1] = []; exec(sys.argv.pop(1))";
  std::vector<std::string> words = {python.string(), "-c", kRun, script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return tools::run_program(words, input, ProgramErrors::captured);
}

}  // namespace oomrec::tools::processes
