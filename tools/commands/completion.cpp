// `oomrec completion SHELL`: the completion script of a shell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kCompletionExamples =
    "  source <(oomrec completion bash)\n"
    "  oomrec completion zsh > ~/.zfunc/_oomrec         a directory of $fpath\n"
    "  oomrec completion fish > ~/.config/fish/completions/oomrec.fish\n";

// They only pass the words on, and list what complete.cpp leaves to them.
constexpr std::string_view kBash =
    R"shell(# bash completion of oomrec, written by `oomrec completion bash`
_oomrec() {
  local word=${COMP_WORDS[COMP_CWORD]} line lines IFS=$'\n'
  COMPREPLY=()
  [[ $word == = ]] && word=
  lines=$("${COMP_WORDS[0]/#\~\//$HOME/}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  for line in $lines; do
    case $line in
      :file | :directory)
        compopt -o filenames 2> /dev/null
        COMPREPLY+=($(compgen -A "${line#:}" -- "$word"))
        ;;
      :program*)
        IFS=$' \t\n'
        if declare -F _command_offset > /dev/null; then
          _command_offset "${line#* }"
        elif ((COMP_CWORD == ${line#* })); then
          COMPREPLY=($(compgen -c -- "$word"))
        else
          COMPREPLY=($(compgen -f -- "$word"))
        fi
        ;;
      "$word"*) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _oomrec oomrec
)shell";

constexpr std::string_view kZsh = R"shell(#compdef oomrec
# zsh completion of oomrec, written by `oomrec completion zsh`
_oomrec() {
  local line word
  local -a offered
  for line in ${(f)"$(${~words[1]} __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)"}; do
    case $line in
      :file) compset -P '--*='; _files ;;
      :directory) compset -P '--*='; _files -/ ;;
      :program*) shift ${line#* } words; (( CURRENT -= ${line#* } )); _normal ;;
      *) word=${line%%$'\t'*}; offered+=(${word//:/\\:}${${line#$word}/$'\t'/:}) ;;
    esac
  done
  (( ! $#offered )) || _describe oomrec offered
}
if [[ $funcstack[1] == _oomrec ]]; then _oomrec "$@"; else compdef _oomrec oomrec; fi
)shell";

constexpr std::string_view kFish =
    R"shell(# fish completion of oomrec, written by `oomrec completion fish`
function __oomrec
    set -l words (commandline -opc) (commandline -ct)
    set -l value (string replace -r -- '^--[^=]*=' '' $words[-1])
    for line in ($words[1] __complete $words[2..-1] 2> /dev/null)
        switch $line
            case :file
                __fish_complete_path $value
            case :directory
                __fish_complete_directories $value
            case ':program*'
                set -l from (math 1 + (string split ' ' -- $line)[2])
                complete -C "$words[$from..-1]"
            case '*'
                echo $line
        end
    end
end
complete -c oomrec -f -a '(__oomrec)'
)shell";

struct Shell {
  std::string_view name, script;
};
constexpr Shell kShells[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

}  // namespace

int completion_command(const Words& words) {
  Arguments arguments{"completion", "SHELL",
                      "Prints a script that completes commands, options, values, bundles and "
                      "processes. Packages of oomrec install it where the shells look.",
                      kCompletionExamples};
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  std::string name;
  arguments.positional("SHELL", name, fmt::format("one of {}", fmt::join(names, ", ")), names);
  if (!arguments.parse(words)) return code(Exit::shown);

  const auto* const shell = std::ranges::find(kShells, name, &Shell::name);
  if (shell == std::end(kShells)) {
    throw Error{Exit::bad_input,
                name.empty()
                    ? "no shell was given"
                    : fmt::format("there is no completion for the shell {}", printable(name)),
                fmt::format("Give one of {}.", fmt::join(names, ", "))};
  }
  fmt::print("{}", shell->script);
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
