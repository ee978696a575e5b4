// fish: a line for each word.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/base/completion/scripts.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

constexpr std::string_view kConditions =
    R"(# fish completion of oomrec, written by `oomrec completion fish`

function __oomrec_in -d 'in the words of this command, not in those of a program behind --'
    set -l words (commandline -opc)
    set -q words[2]; and test $words[2] = $argv[1]; and not contains -- -- $words
end

function __oomrec_behind -d 'in the words of a program behind -- of this command'
    set -l words (commandline -opc)
    set -q words[2]; and test $words[2] = $argv[1]; and contains -- -- $words
end

function __oomrec_program
    set -l words (commandline -opc) (commandline -ct)
    set -l from (math 1 + (contains -i -- -- $words))
    complete -C "$words[$from..-1]"
end

function __oomrec_bundles
    set -l dumps oom_dumps
    set -q OOMREC_DUMP_DIR; and set dumps $OOMREC_DUMP_DIR
    set -l bundles $dumps/oom_*/
    string trim -r -c / -- $bundles
    __oomrec_processes
    __fish_complete_path (commandline -ct)
end

complete -c oomrec -f
complete -c oomrec -n 'test (count (commandline -opc)) -eq 1' -l help -d 'how it is used'
complete -c oomrec -n 'test (count (commandline -opc)) -eq 1' -l version -d 'its version'
)";

std::string action(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::words:
      return fmt::format("{}", fmt::join(words, " "));
    case Values::directories:
      return "(__fish_complete_directories)";
    case Values::files:
      return "(__fish_complete_path (commandline -ct))";
    case Values::bundles:
      return "(__oomrec_bundles)";
    case Values::processes:
      return "(__oomrec_processes)";
    case Values::program:
      return "(__oomrec_program)";
    case Values::none:
      break;
  }
  return {};
}

// "-l limit" of --limit, "-s o" of -o.
std::string name_of(const ArgumentRow& option) {
  const bool is_long = option.name.starts_with("--");
  return fmt::format("-{} {}", is_long ? 'l' : 's', option.name.substr(is_long ? 2 : 1));
}

std::string option_line(const CompletedCommand& command, const ArgumentRow& option) {
  std::string line = fmt::format("complete -c oomrec -n '__oomrec_in {}' {} -d {}", command.name,
                                 name_of(option), single_quoted(option.help));
  if (option.type.empty()) return line + "\n";
  const std::string values = action(values_of_option(option), option.words);
  return fmt::format("{} -x{}\n", line, values.empty() ? "" : " -a " + single_quoted(values));
}

// fish does not count positional arguments: all are completed alike.
std::string positional_line(const CompletedCommand& command) {
  const ArgumentTable& table = command.arguments;
  const Values values = values_of_positional(table, 0);
  return fmt::format("complete -c oomrec -n '{} {}' -a {}\n",
                     values == Values::program ? "__oomrec_behind" : "__oomrec_in", command.name,
                     single_quoted(action(values, table.positionals[0].words)));
}

}  // namespace

std::string fish_script(const CompletedCommands& commands) {
  std::string script{kConditions};
  script += fmt::format("\nfunction __oomrec_processes\n    {}\nend\n", kRecordedProcesses);
  for (const CompletedCommand& command : commands) {
    script +=
        fmt::format("\ncomplete -c oomrec -n 'test (count (commandline -opc)) -eq 1' -a {} -d {}\n",
                    command.name, single_quoted(command.summary));
    for (const ArgumentRow& option : command.arguments.options)
      script += option_line(command, option);
    script += option_line(command, {"--help", "", "how it is used"});
    if (!command.arguments.positionals.empty()) script += positional_line(command);
  }
  return script;
}

}  // namespace oomrec::tools
