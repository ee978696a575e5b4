#include "tools/base/programs.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;

// Closed at its end.
struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

std::string read_from_start(int file) {
  std::string text;
  char piece[4096];
  while (text.size() < kMostOutput) {
    const ssize_t bytes = pread(file, piece, sizeof piece, static_cast<off_t>(text.size()));
    if (bytes <= 0) break;
    text.append(piece, static_cast<std::size_t>(bytes));
  }
  return text;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

bool is_in_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  const std::vector<std::string_view> directories = split(path != nullptr ? path : "", ':');
  return std::any_of(directories.begin(), directories.end(), [&](std::string_view directory) {
    return !directory.empty() &&
           access(fmt::format("{}/{}", directory, program).c_str(), X_OK) == 0;
  });
}

int file_in_memory(std::string_view text) {
  const int file = memfd_create("oomrec", MFD_CLOEXEC);
  if (file < 0) return -1;
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t bytes = write(file, text.data() + at, text.size() - at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      close(file);
      return -1;
    }
    at += static_cast<std::size_t>(bytes);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

ProgramResult run_program(const std::vector<std::string>& words, std::string_view input) {
  const Descriptor in{file_in_memory(input)}, out{file_in_memory({})};
  if (in.number < 0 || out.number < 0) return {};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.number, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.number, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return {};
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) continue;
  return {exit_code_of(wait_status), read_from_start(out.number)};
}

}  // namespace oomrec::tools
