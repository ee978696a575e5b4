// `oomrec __complete WORD…`: what the last word may become. The scripts of `oomrec completion` ask.
//
// Prints a line for each candidate, "WORD" or "WORD\tHELP", and what only a shell can list as
// ":file", ":directory" or ":program N": the words from N on are another program's.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "tools/base/arguments.h"
#include "tools/base/directory.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/deaths/evidence.h"

namespace oomrec::tools::commands {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  std::string word;
  std::string help = {};
};
using Candidates = std::vector<Candidate>;

void print(const Candidates& candidates, std::string_view before = {}) {
  for (const auto& [word, help] : candidates)
    fmt::print("{}{}{}{}\n", before, word, help.empty() ? "" : "\t", help);
}

Candidates recorded_processes() {
  Candidates found;
  for (const pid_t pid : ids_in("/proc"))
    if (deaths::has_recorder(static_cast<std::uint64_t>(pid)))
      found.push_back({std::to_string(pid)});
  return found;
}

// As a user would type them: relative if they are below the working directory.
Candidates bundles_and_processes() {
  Candidates found = recorded_processes();
  std::error_code gone;
  const fs::path here = fs::current_path(gone);
  for (const fs::path& dumps : bundles::dump_directories()) {
    const bool is_below =
        !here.empty() && !dumps.lexically_relative(here).string().starts_with("..");
    for (const fs::path& bundle : entries_of(dumps)) {
      if (!bundle.filename().string().starts_with("oom_")) continue;
      found.push_back({is_below ? bundle.lexically_relative(here) : bundle});
    }
  }
  return found;
}

// "BUNDLE" of "BUNDLE|PID" and of "BUNDLE[@SECONDS]".
std::string_view first_type(std::string_view type) {
  return type.substr(0, type.find_first_of("[|"));
}

// What a value of this type may be. `before`: what precedes it in the same word, "--mode=".
void complete_value(const ArgumentRow& row, std::string_view type, std::string_view typed,
                    std::string_view before = {}) {
  if (!row.words.empty()) {
    Candidates words;
    for (const std::string& word : row.words) words.push_back({word});
    return print(words, before);
  }
  type = first_type(type);
  if (type == "FILE") return fmt::print(":file\n");
  if (type == "DIR") return fmt::print(":directory\n");
  if (type == "PID") return print(recorded_processes(), before);
  if (type != "BUNDLE" && type != "SESSION") return;
  const Candidates found = bundles_and_processes();
  print(found, before);
  if (std::ranges::none_of(found,
                           [&](const Candidate& one) { return one.word.starts_with(typed); }))
    fmt::print(":file\n");
}

void complete_option(const ArgumentTable& table) {
  Candidates options{{"--help", "how it is used"}};
  for (const ArgumentRow& option : table.options)
    for (const std::string_view name : split(option.name, ','))
      options.push_back({std::string{name}, option.help});
  print(options);
}

const ArgumentRow* option_named(const ArgumentTable& table, std::string_view name) {
  for (const ArgumentRow& option : table.options)
    if (std::ranges::count(split(option.name, ','), name) != 0) return &option;
  return nullptr;
}

// A positional without a known type names a bundle.
void complete_positional(const ArgumentTable& table, std::size_t number, std::string_view typed) {
  const std::vector<ArgumentRow>& rows = table.positionals;
  if (table.rest && number >= rows.size()) return fmt::print(":file\n");
  if (rows.empty() || (number >= rows.size() && !table.repeated)) return;
  const ArgumentRow& row = rows[std::min(number, rows.size() - 1)];
  const std::string_view type = first_type(row.name);
  const bool is_known = type == "FILE" || type == "DIR" || type == "PID";
  complete_value(row, is_known ? type : "BUNDLE", typed);
}

// `words`: of the command, the last one incomplete. bash splits "--mode=exact" into three.
void complete(const ArgumentTable& table, const Words& words) {
  constexpr std::size_t kBefore = 2;  // "oomrec" and the command
  const bool starts_program = table.rest && table.positionals.back().words.empty();
  const std::size_t last = words.size() - 1;
  const std::string typed = words[last] == "=" ? "" : words[last];
  std::size_t number = 0;  // of positionals before the last word
  for (std::size_t i = 0; i < last; ++i) {
    const bool is_end = words[i] == "--";
    const bool is_option = !is_end && words[i].starts_with('-') && words[i] != "-";
    if (starts_program && !is_option)
      return fmt::print(":program {}\n", i + kBefore + (is_end ? 1 : 0));
    if (is_end) return;
    if (!is_option) {
      ++number;
      continue;
    }
    const ArgumentRow* const option = option_named(table, words[i]);
    if (option == nullptr || option->type.empty()) continue;
    ++i;
    if (i < last && words[i] == "=") ++i;
    if (i >= last) return complete_value(*option, option->type, typed);
  }
  const std::size_t equals = typed.find('=');
  if (typed.starts_with("--") && equals != std::string::npos) {
    const ArgumentRow* const option = option_named(table, typed.substr(0, equals));
    if (option != nullptr)
      complete_value(*option, option->type, typed.substr(equals + 1), typed.substr(0, equals + 1));
  } else if (typed.starts_with('-')) {
    complete_option(table);
  } else if (starts_program) {
    fmt::print(":program {}\n", last + kBefore);
  } else {
    complete_positional(table, number, typed);
  }
}

}  // namespace

int complete_command(const Words& words) {
  if (words.size() <= 1) {
    Candidates names;
    for (const Command& command : kCommands)
      names.push_back({std::string{command.name}, std::string{command.summary}});
    names.push_back({"--help", "how it is used"});
    names.push_back({"--version", "its version"});
    print(names);
    return code(Exit::shown);
  }
  for (const Command& command : kCommands)
    if (command.name == words[0])
      complete(Arguments::table_of([&] { command.function({}); }),
               {words.begin() + 1, words.end()});
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
