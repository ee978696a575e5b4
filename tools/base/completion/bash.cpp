// bash: one function, which parses the words before the cursor.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/base/completion/scripts.h"
#include "tools/base/text.h"

namespace oomrec::tools {
namespace {

constexpr std::string_view kValues =
    R"(# bash completion of oomrec, written by `oomrec completion bash`

_oomrec_lines() {
  local IFS=$'\n'
  COMPREPLY+=($(compgen "$@" -- "$word"))
}

_oomrec_words() { _oomrec_lines -W "${1// /$'\n'}"; }

_oomrec_paths() {
  compopt -o filenames 2> /dev/null
  _oomrec_lines "$1"
}

_oomrec_bundles() {
  local bundle
  for bundle in "${OOMREC_DUMP_DIR:-oom_dumps}"/oom_*/; do
    [[ -d $bundle && $bundle == "$word"* ]] && COMPREPLY+=("${bundle%/}")
  done
  _oomrec_processes
  ((${#COMPREPLY[@]})) || _oomrec_paths -f
}

# Another program's words, from number $1 on.
_oomrec_program() {
  if declare -F _command_offset > /dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    _oomrec_lines -c
  else
    _oomrec_paths -f
  fi
}
)";

// bash splits words at "=" (COMP_WORDBREAKS): --mode=exact is three of them.
constexpr std::string_view kWalk = R"(
  local at=2 number=0
  while ((at < COMP_CWORD)); do
    case ${COMP_WORDS[at]} in
      --) break ;;
      -*)
        if [[ " $valued " == *" ${COMP_WORDS[at]} "* ]]; then
          ((++at))
          [[ ${COMP_WORDS[at]} == = ]] && ((++at))
        fi
        ;;
      *)
        [[ $program ]] && break
        ((++number))
        ;;
    esac
    ((++at))
  done
)";

std::string action(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::words:
      return fmt::format("_oomrec_words {}",
                         single_quoted(fmt::format("{}", fmt::join(words, " "))));
    case Values::directories:
      return "_oomrec_paths -d";
    case Values::files:
      return "_oomrec_paths -f";
    case Values::bundles:
      return "_oomrec_bundles";
    case Values::processes:
      return "_oomrec_processes";
    case Values::program:
      return "_oomrec_program \"$at\"";
    case Values::none:
      break;
  }
  return ":";
}

// `beginning`: if not empty, a prefix that matches as well.
std::string row(const std::string& pattern, const std::string& what,
                const std::string& beginning = "") {
  const std::string also = beginning.empty() ? "" : fmt::format(" | {}*", single_quoted(beginning));
  return fmt::format("      {}{}) {} ;;\n", single_quoted(pattern), also, what);
}

}  // namespace

std::string bash_script(const CompletedCommands& commands) {
  std::string names, tables, values, positionals;
  for (const auto& [name, summary, table] : commands) {
    std::string options = "--help", valued;
    names += fmt::format("{}{}", names.empty() ? "" : " ", name);
    for (const ArgumentRow& option : table.options) {
      options += " " + option.name;
      if (option.type.empty()) continue;
      valued += (valued.empty() ? "" : " ") + option.name;
      values += row(fmt::format("{} {}", name, option.name),
                    action(values_of_option(option), option.words));
    }
    tables += fmt::format("    {}) options={} valued={} program={} ;;\n", name,
                          single_quoted(options), single_quoted(valued), table.rest ? "1" : "");
    for (std::size_t i = 0; i < table.positionals.size(); ++i)
      positionals +=
          row(fmt::format("{} {}", name, i),
              action(values_of_positional(table, i), table.positionals[i].words),
              table.repeated && i + 1 == table.positionals.size() ? fmt::format("{} ", name) : "");
  }
  return fmt::format(
      R"({}
_oomrec_processes() {{
  local processes=$({})
  _oomrec_lines -W "$processes"
}}

_oomrec() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} options= valued= program=
  COMPREPLY=()
  [[ $word == = ]] && word=
  [[ $before == = ]] && before=${{COMP_WORDS[COMP_CWORD-2]}}
  if ((COMP_CWORD == 1)); then
    _oomrec_words {}
    return
  fi
  case $command in
{}    *) return ;;
  esac
{}
  if ((at > COMP_CWORD)); then
    case "$command $before" in
{}    esac
  elif ((at < COMP_CWORD)); then
    [[ ${{COMP_WORDS[at]}} == -- ]] && ((++at))
    [[ $program ]] && _oomrec_program "$at"
  elif [[ $word == -* ]]; then
    _oomrec_words "$options"
  else
    case "$command $number" in
{}    esac
  fi
}}
complete -F _oomrec oomrec
)",
      kValues, kRecordedProcesses, single_quoted("--help --version " + names), tables, kWalk,
      values, positionals);
}

}  // namespace oomrec::tools
