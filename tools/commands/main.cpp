// `oomrec`: dispatches to a subcommand, and prints an error once, in two lines.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "common/system/files.h"
#include "tools/base/large_stack.h"
#include "tools/base/text.h"
#include "tools/commands/allocator.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

void print_usage() {
  fmt::print(
      "oomrec: a program's last minutes of memory, whatever ended it\n\n"
      "usage: oomrec COMMAND [OPTIONS] [ARGUMENTS]\n\ncommands:\n");
  std::size_t widest = 0;
  for (const Command& command : kCommands) widest = std::max(widest, command.name.size());
  for (const Command& command : kCommands)
    fmt::print("  {:<{}} {}\n", command.name, widest, command.summary);
  fmt::print(
      "\nexamples:\n"
      "  oomrec run --limit 8G -- python train.py\n"
      "  oomrec show                        # the newest bundle in ./oom_dumps\n"
      "  oomrec tree --space heap\n"
      "\n"
      "exit codes: 0 shown, 1 nothing found, 2 bad input; `run` has its program's, `stress` one "
      "more\n"
      "`oomrec COMMAND --help` tells the rest.\n");
}

[[noreturn]] void unknown_word(std::string_view word) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  const std::string_view meant = nearest(word, names);
  throw Error{Exit::bad_input, fmt::format("there is no command '{}'", printable(word)),
              meant.empty() ? std::string{"`oomrec --help` lists the commands."}
                            : fmt::format("Did you mean `oomrec {}`?", meant)};
}

const Command& command_of(std::string_view word) {
  for (const Command& command : kCommands) {
    if (command.name == word) return command;
  }
  unknown_word(word);
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
  // What starts a program starts it as it was started itself, and sees to its own work afterwards.
  if (command.function == run_command || command.function == simulate_command ||
      command.function == stress_command) {
    work();
  } else {
    on_large_stack(work);
  }
  return exit_code;
}

// What was shown must have arrived: a full disk behind stdout is no success. A reader that went
// away (a pager, head) has seen what it wanted.
int output_failed(int error, int exit_code) {
  if (error == EPIPE) return exit_code;
  throw Error{Exit::bad_input,
              fmt::format("the output could not be written: {}", std::strerror(error)),
              "Is the disk behind it full?"};
}

int flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return output_failed(errno, exit_code);
}

// Runs the command. fmt throws where a write to stdout fails on the way.
int run(Words words, std::string& name) {
  try {
    return flushed(dispatch(std::move(words), name));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    return output_failed(error.code().value(), code(Exit::shown));
  }
}

int report(std::string_view name, Exit exit, std::string_view what_happened,
           std::string_view what_to_do) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n  {}\n", name, what_happened, what_to_do);
  return code(exit);
}

}  // namespace
}  // namespace oomrec::tools::commands

int main(int count, char** arguments) {
  using namespace oomrec::tools;
  using namespace oomrec::tools::commands;
  main_begins();
  std::string name = "oomrec";
  oomrec::system::read_roots(environ);
  try {
    return run(Words(arguments + 1, arguments + count), name);
  } catch (const Error& error) {
    return report(name, error.code(), error.what(), error.what_to_do());
  } catch (const std::bad_alloc&) {
    return report(name, failed(), "there is not enough memory for this",
                  "Raise the limit that this shell has (ulimit -v), or do it on a larger machine.");
  } catch (const std::exception& error) {
    return report(name, failed(), error.what(), "`oomrec COMMAND --help` shows how it is used.");
  }
}
