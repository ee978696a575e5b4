#include "tools/base/programs.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tools/base/environment.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;

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

}  // namespace

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

bool is_in_path(std::string_view program) {
  const std::string path = environment_variable("PATH");
  return std::ranges::any_of(split(path, ':'), [&](std::string_view directory) {
    return !directory.empty() &&
           access(fmt::format("{}/{}", directory, program).c_str(), X_OK) == 0;
  });
}

Descriptor file_in_memory(std::string_view text) {
  Descriptor file = memfd_create("oomrec", MFD_CLOEXEC);
  if (file < 0 || !write_all(file, text)) return {};
  lseek(file, 0, SEEK_SET);
  return file;
}

std::vector<char*> arguments_of(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

ProgramResult run_program(const std::vector<std::string>& words, std::string_view input,
                          ProgramErrors errors) {
  const Descriptor in{file_in_memory(input)}, out{file_in_memory({})}, failed{file_in_memory({})};
  if (in < 0 || out < 0 || failed < 0) return {};
  const std::vector<char*> arguments = arguments_of(words);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  if (errors == ProgramErrors::captured)
    posix_spawn_file_actions_adddup2(&files, failed, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return {};
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) continue;
  return {exit_code_of(wait_status), read_from_start(out), read_from_start(failed)};
}

}  // namespace oomrec::tools
