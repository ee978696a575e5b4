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

namespace {

// A file in memory. Unlike a pipe it needs no concurrent reader.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text = {})
      : descriptor_(memfd_create("oomrec", MFD_CLOEXEC)) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t wrote = write(descriptor_, text.data() + done, text.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    if (descriptor_ >= 0) lseek(descriptor_, 0, SEEK_SET);
  }
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  std::string text() const {
    std::string text;
    char buffer[4096];
    off_t at = 0;
    for (ssize_t bytes = 0; (bytes = pread(descriptor_, buffer, sizeof buffer, at)) > 0;
         at += bytes)
      text.append(buffer, static_cast<std::size_t>(bytes));
    return text;
  }

 private:
  const int descriptor_;
};

}  // namespace

fs::path find_python() {
  try {
    return find_program(with_interpreter({"-c"}).front());
  } catch (const Error&) {
    return {};
  }
}

PythonResult run_python(const fs::path& python, const std::string& script,
                        const std::vector<std::string>& arguments, const std::string& input) {
  const MemoryFile in{input};
  const MemoryFile out;
  const MemoryFile errors;
  // `-c` searches the working directory first, where a json.py would replace Python's. The script
  // is a separate argument because its imports from __future__ must come first.
  constexpr const char* kRun = "import sys; sys.path[:1] = []; exec(sys.argv.pop(1))";
  std::vector<std::string> words = {python.string(), "-c", kRun, script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    umask(077);  // what it draws is as private as the recording
    dup2(in.descriptor(), STDIN_FILENO);
    dup2(out.descriptor(), STDOUT_FILENO);
    dup2(errors.descriptor(), STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 127 << 8;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return {exit_code_of(status), out.text(), errors.text()};
}

}  // namespace oomrec::tools::processes
