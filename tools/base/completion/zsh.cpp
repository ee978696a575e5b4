// zsh: the specification of each command for _arguments.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/base/completion/scripts.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

constexpr std::string_view kValues = R"(#compdef oomrec
# zsh completion of oomrec, written by `oomrec completion zsh`

_oomrec_bundles() {
  local expl failed=1
  local -a bundles=(${OOMREC_DUMP_DIR:-oom_dumps}/oom_*(N/))
  (( $#bundles )) && _wanted bundles expl bundle compadd -f -a bundles && failed=0
  _oomrec_processes && failed=0
  (( failed )) && _files
}
)";

// Escapes colons and brackets, which _arguments interprets.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string action(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::words:
      return fmt::format("({})", fmt::join(words, " "));
    case Values::directories:
      return "_directories";
    case Values::files:
      return "_files";
    case Values::bundles:
      return "_oomrec_bundles";
    case Values::processes:
      return "_oomrec_processes";
    case Values::program:
      return "_normal";
    case Values::none:
      break;
  }
  return " ";
}

std::string specification(const std::string& text) {
  return fmt::format(" \\\n        {}", single_quoted(text));
}

std::string option_specification(const ArgumentRow& option) {
  const std::string help = escaped(option.help);
  if (option.type.empty()) return specification(fmt::format("{}[{}]", option.name, help));
  const std::string_view separator =
      option.name.starts_with("--") ? "=" : "+";  // or in the next word
  return specification(fmt::format("{}{}[{}]:{}:{}", option.name, separator, help,
                                   escaped(option.type),
                                   action(values_of_option(option), option.words)));
}

std::string positional_specification(const ArgumentTable& table, std::size_t number) {
  const ArgumentRow& row = table.positionals[number];
  const Values values = values_of_positional(table, number);
  const bool again = table.repeated && number + 1 == table.positionals.size();
  const std::string prefix = values == Values::program ? "*::"
                             : again                   ? "*:"
                                                       : fmt::format("{}:", number + 1);
  return specification(
      fmt::format("{}{}:{}", prefix, escaped(row.name), action(values, row.words)));
}

}  // namespace

std::string zsh_script(const CompletedCommands& commands) {
  std::string names, cases;
  for (const auto& [name, summary, table] : commands) {
    names += fmt::format("      {}\n", single_quoted(fmt::format("{}:{}", name, summary)));
    cases += fmt::format("    {})\n      _arguments -S", name);
    for (const ArgumentRow& option : table.options) cases += option_specification(option);
    for (std::size_t i = 0; i < table.positionals.size(); ++i)
      cases += positional_specification(table, i);
    cases += specification("--help[how it is used]") + "\n      ;;\n";
  }
  return fmt::format(R"({}
_oomrec_processes() {{
  local expl
  local -a processes=($({}))
  _wanted processes expl process compadd -a processes
}}

_oomrec() {{
  if (( CURRENT == 2 )); then
    local -a commands=(
{}    )
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}

if [[ $funcstack[1] == _oomrec ]]; then _oomrec "$@"; else compdef _oomrec oomrec; fi
)",
                     kValues, kRecordedProcesses, names, cases);
}

}  // namespace oomrec::tools
