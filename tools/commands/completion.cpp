// `oomrec completion SHELL`: the completion script of a shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/arguments.h"
#include "tools/base/completion/scripts.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  source <(oomrec completion bash)\n"
    "  oomrec completion zsh > ~/.zfunc/_oomrec         a directory of $fpath\n"
    "  oomrec completion fish > ~/.config/fish/completions/oomrec.fish\n";

struct Shell {
  std::string_view name;
  std::string (*script)(const CompletedCommands&);
};
constexpr Shell kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

// Splits an option with two names, "-i,--interactive", into two.
std::vector<ArgumentRow> split_names(const std::vector<ArgumentRow>& options) {
  std::vector<ArgumentRow> rows;
  for (const ArgumentRow& option : options) {
    for (const std::string_view name : split(option.name, ',')) {
      rows.push_back(option);
      rows.back().name = name;
    }
  }
  return rows;
}

CompletedCommands completed_commands() {
  CompletedCommands commands;
  for (const Command& command : kCommands) {
    ArgumentTable table = Arguments::table_of([&] { command.function({}); });
    table.options = split_names(table.options);
    commands.push_back({command.name, command.summary, std::move(table)});
  }
  return commands;
}

}  // namespace

int completion_command(const Words& words) {
  Arguments arguments{"completion", "SHELL",
                      "Prints a script that completes commands, options, values, bundles and "
                      "processes. Packages of oomrec install it where the shells look.",
                      kExamples};
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  std::string name;
  arguments.positional("SHELL", name, fmt::format("one of {}", fmt::join(names, ", ")), names);
  if (!arguments.parse(words)) return code(Exit::shown);

  const auto* const shell =
      std::find_if(std::begin(kShells), std::end(kShells),
                   [&](const Shell& candidate) { return candidate.name == name; });
  if (shell == std::end(kShells)) {
    throw Error{Exit::bad_input,
                name.empty()
                    ? "no shell was given"
                    : fmt::format("there is no completion for the shell {}", printable(name)),
                fmt::format("Give one of {}.", fmt::join(names, ", "))};
  }
  fmt::print("{}", shell->script(completed_commands()));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
