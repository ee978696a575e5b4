// man-page TEMPLATE: prints the man page, with what the commands and the options of `run` accept.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tools/base/arguments.h"
#include "tools/base/foreign_file.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::commands {
namespace {

// Text as roff shows it: hyphens that can be copied, no request at the start of a line.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

std::string italic(std::string_view text) {
  return text.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(text));
}

std::string paragraph(std::string_view name, std::string_view value, std::string_view help) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(name), italic(value), roff(help));
}

bool is_option_of_run(const ArgumentRow& row) {
  return std::ranges::any_of(processes::option_rows(), [&](const processes::OptionRow& option) {
    return option.flag() == row.name;
  });
}

struct Pages {
  std::string names, commands, common, options;
};

Pages pages() {
  using Key = std::pair<std::string, std::string>;  // an option's name and help
  constexpr int kSeveral = 4;                       // commands
  std::vector<ArgumentTable> tables;
  std::map<Key, int> uses;
  for (const Command& command : kCommands) {
    tables.push_back(Arguments::table_of([&] { command.function({}); }));
    for (const ArgumentRow& row : tables.back().options) ++uses[{row.name, row.help}];
  }
  Pages pages;
  std::map<Key, bool> is_listed;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::string_view name = kCommands[i].name;
    if (name != "run") pages.names += fmt::format("{}{}", pages.names.empty() ? "" : " | ", name);
    pages.commands += paragraph(name, tables[i].usage, tables[i].summary);
    std::string rows;
    for (const ArgumentRow& row : tables[i].options) {
      const Key key{row.name, row.help};
      if (is_option_of_run(row) && name == "run") continue;
      const bool is_common = uses[key] >= kSeveral;
      if (is_common && std::exchange(is_listed[key], true)) continue;
      (is_common ? pages.common : rows) += paragraph(row.name, row.type, row.help);
    }
    if (!rows.empty()) pages.commands += fmt::format(".RS\n{}.RE\n", rows);
  }
  for (const processes::OptionRow& option : processes::option_rows())
    pages.options += paragraph(option.flag(), option.value(),
                               fmt::format("{}: {}", option.variable, option.help_text()));
  return pages;
}

}  // namespace
}  // namespace oomrec::tools::commands

int main(int count, char** arguments) {
  using namespace oomrec::tools;
  if (count != 2) return 2;
  const commands::Pages pages = commands::pages();
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const std::string whole = read_foreign_file(ForeignPath::named(arguments[1]), kMostBytes);
  for (const std::string_view line : split(whole, '\n')) {
    if (line == "@COMMANDS@") {
      fmt::print("{}", pages.commands);
    } else if (line == "@COMMON@") {
      fmt::print("{}", pages.common);
    } else if (line == "@OPTIONS@") {
      fmt::print("{}", pages.options);
    } else if (line == "@NAMES@") {
      fmt::print("{{ {} }}\n", pages.names);
    } else if (!line.empty()) {
      fmt::print("{}\n", line);
    }
  }
  return 0;
}
