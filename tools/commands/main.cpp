// `oomrec`: dispatches to a subcommand, and prints an error once, in two lines.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "common/system/files.h"
#include "tools/base/large_stack.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/commands/allocator.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::commands {
namespace {

void print_usage() {
  fmt::print(
      "oomrec: find out why a program ran out of memory, even after SIGKILL\n\n"
      "usage: oomrec COMMAND [OPTIONS] [ARGUMENTS]\n");
  std::size_t widest = 0;
  for (const Command& command : kCommands) widest = std::max(widest, command.name.size());
  for (std::size_t group = 0; group < std::size(kGroupTitles); ++group) {
    fmt::print("\n{}:\n", kGroupTitles[group]);
    for (const Command& command : kCommands)
      if (command.group == static_cast<Group>(group))
        fmt::print("  {:<{}} {}\n", command.name, widest, command.summary);
  }
  fmt::print(
      "\nexamples:\n"
      "  oomrec run --limit 8G -- python train.py\n"
      "  oomrec show                        # the newest bundle in ./oom_dumps\n"
      "  oomrec tree --space heap\n"
      "\n"
      "exit codes: 0 success, 1 nothing found, 2 bad input; `run` returns its program's "
      "own\n`oomrec "
      "COMMAND --help` describes a command.\n");
}

[[noreturn]] void throw_unknown_command(std::string_view word) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  std::string meant{nearest(word, names)};
  // An option of `run`, or what it runs.
  const std::string name{word};
  const bool is_option =
      std::ranges::any_of(processes::option_rows(),
                          [&](const processes::OptionRow& row) { return row.flag() == name; });
  if (is_option) meant = fmt::format("run {} …", name);
  if (access(name.c_str(), F_OK) == 0) meant = "run " + shell_word(name);
  throw Error{Exit::bad_input, fmt::format("unknown command '{}'", printable(word)),
              meant.empty() ? std::string{"`oomrec --help` lists the commands."}
                            : fmt::format("Did you mean `oomrec {}`?", meant)};
}

const Command& command_of(std::string_view word) {
  for (const Command& command : kCommands)
    if (command.name == word) return command;
  for (const Command& command : kUnlistedCommands)
    if (command.name == word) return command;
  throw_unknown_command(word);
}

int dispatch(Words words, std::string& name) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" ||
      (words[0] == "help" && words.size() == 1)) {
    print_usage();
    return code(words.empty() ? Exit::bad_input : Exit::shown);
  }
  if (words[0] == "--version") {
    fmt::print("oomrec {}\n", OOMREC_VERSION);
    return code(Exit::shown);
  }
  if (words[0] == "help") words = {words[1], "--help"};
  const Command& command = command_of(words[0]);
  name = fmt::format("oomrec {}", command.name);
  words.erase(words.begin());
  int exit_code = 0;
  const auto work = [&] { exit_code = command.function(words); };
  // A program must inherit our original stack limit and thread: these commands use a large stack
  // only for their work after its end.
  if (command.function == run_command || command.function == simulate_command ||
      command.function == stress_command) {
    work();
  } else {
    on_large_stack(work);
  }
  return exit_code;
}

// A full disk behind stdout is an error. A closed pipe is not: the reader (a pager, head) has read
// enough.
int after_failed_output(int error, int exit_code) {
  if (error == EPIPE) return exit_code;
  throw Error{Exit::bad_input, fmt::format("could not write the output: {}", std::strerror(error)),
              "Is the disk full?"};
}

int flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return after_failed_output(errno, exit_code);
}

// Runs the command. fmt throws std::system_error if a write to stdout fails.
int run(Words words, std::string& name) {
  try {
    return flushed(dispatch(std::move(words), name));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    return after_failed_output(error.code().value(), code(Exit::shown));
  }
}

// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise the next file that
// the command opens would get that descriptor, and messages would be written into it. The programs
// that the command starts still find them closed, and reading stdin or writing stdout still fails.
void hold_closed_standard_files() {
  constexpr int kFlags[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int number = 0; number < 3; ++number)
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(open("/dev/null", kFlags[number] | O_CLOEXEC));
}

int report(std::string_view name, Exit exit, std::string_view what_happened,
           std::string_view what_to_do) {
  std::fflush(stdout);
  write_stderr(fmt::format("{}: {}\n  {}\n", name, what_happened, what_to_do));
  return code(exit);
}

}  // namespace
}  // namespace oomrec::tools::commands

int main(int count, char** arguments) {
  using namespace oomrec::tools;
  using namespace oomrec::tools::commands;
  hold_closed_standard_files();
  throw_from_now_on();
  std::string name = "oomrec";
  oomrec::system::read_roots(environ);
  try {
    return run(Words(arguments + 1, arguments + count), name);
  } catch (const Error& error) {
    return report(name, error.code(), error.what(), error.what_to_do());
  } catch (const std::bad_alloc&) {
    return report(name, failure_exit(), "there is not enough memory to do this",
                  "Raise the shell's limit (ulimit -v), or use a larger machine.");
  } catch (const std::exception& error) {
    return report(name, failure_exit(), error.what(), "`oomrec COMMAND --help` shows its usage.");
  }
}
