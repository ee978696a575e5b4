// Completion scripts for each shell, generated from what the commands accept (Arguments).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/arguments.h"

namespace oomrec::tools {

struct CompletedCommand {
  std::string_view name;
  std::string_view summary;
  ArgumentTable arguments;
};
using CompletedCommands = std::vector<CompletedCommand>;

// What a value is completed with. `bundles` includes recorded processes.
enum class Values { none, words, directories, files, bundles, processes, program };
Values values_of_option(const ArgumentRow& row);
Values values_of_positional(const ArgumentTable& table, std::size_t number);

// Prints the pids of the user's recorded processes.
inline constexpr std::string_view kRecordedProcesses =
    "grep -ls liboomrec /proc/*/maps 2> /dev/null | grep -o '[0-9][0-9]*'";

std::string bash_script(const CompletedCommands& commands);
std::string zsh_script(const CompletedCommands& commands);
std::string fish_script(const CompletedCommands& commands);

}  // namespace oomrec::tools
