#include "tools/processes/launch/python.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

std::string interpreter() {
  const char* const named = std::getenv(kPythonVariable);
  if (named != nullptr && *named != '\0') return named;
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).replace_filename("python3");
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

}  // namespace

std::vector<std::string> with_interpreter(std::vector<std::string> words) {
  if (words.empty()) return words;
  const std::string& first = words.front();
  const bool is_option = std::find(std::begin(kPythonOptions), std::end(kPythonOptions), first) !=
                         std::end(kPythonOptions);
  if (!is_option && !first.ends_with(".py")) return words;
  std::error_code ignored;
  if (!is_option && !fs::exists(first, ignored)) words.front() = find_program(first);
  words.insert(words.begin(), interpreter());
  return words;
}

}  // namespace oomrec::tools::processes
