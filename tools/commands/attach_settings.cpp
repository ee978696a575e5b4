#include "tools/commands/attach_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/options.h"
#include "tools/base/arguments.h"
#include "tools/processes/launch/library.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::commands {
namespace {

using processes::Settings;

bool has(const Settings& settings, std::string_view variable) {
  return std::ranges::any_of(settings,
                             [&](const auto& setting) { return setting.first == variable; });
}

Settings settings_of(const Settings& flags) {
  Settings settings = flags;
  for (const processes::OptionRow& row : processes::option_rows()) {
    if ((row.traits & kFixedAtStart) != 0) continue;
    const char* const own = std::getenv(std::string{row.variable}.c_str());
    if (own != nullptr && *own != '\0' && !has(flags, row.variable))
      settings.emplace_back(row.variable, own);
  }
  return settings;
}

// What the user has written: the flag, or the variable.
std::string name_of(std::string_view variable, const Settings& flags) {
  for (const processes::OptionRow& row : processes::option_rows())
    if (row.variable == variable && has(flags, variable)) return row.flag();
  return std::string{variable};
}

void check(const Settings& settings, const Settings& flags) {
  std::vector<std::string> entries;
  for (const auto& [variable, value] : settings)
    entries.push_back(fmt::format("{}={}", variable, value));
  std::vector<const char*> pointers;
  pointers.reserve(entries.size() + 1);
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  OptionProblems problems;
  read_options(pointers.data(), problems);
  for (const OptionProblem& problem : problems)
    throw invalid_value(name_of(problem.variable, flags), problem.value,
                        fmt::format("Use {}.", accepted_by(problem.variable)));
}

}  // namespace

processes::Attached attach_with_settings(pid_t pid, const Settings& flags) {
  const Settings settings = settings_of(flags);
  check(settings, flags);
  return processes::attach_to(pid, processes::find_library(), settings);
}

}  // namespace oomrec::tools::commands
