#include "tools/commands/attach_settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "common/options/options.h"
#include "tools/base/arguments.h"
#include "tools/processes/launch/library.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::commands {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// Options of the recording: flags of this command, else variables, as for `oomrec run`.
Settings settings_of(const std::string& mode, const std::string& limit,
                     const std::string& directory) {
  Settings settings;
  const auto set = [&](std::string_view variable, const std::string& given) {
    const char* const own = std::getenv(std::string{variable}.c_str());
    const std::string value = !given.empty() ? given : own != nullptr ? own : "";
    if (!value.empty()) settings.emplace_back(variable, value);
  };
  for (const processes::OptionRow& row : processes::option_rows()) {
    if (row.variable == "OOMREC_LIMIT_AS" || row.variable == "OOMREC_PYTHON_OBJECTS") continue;
    set(row.variable, row.variable == "OOMREC_MODE"       ? mode
                      : row.variable == "OOMREC_LIMIT"    ? limit
                      : row.variable == "OOMREC_DUMP_DIR" ? directory
                                                          : "");
  }
  return settings;
}

void check(const Settings& settings) {
  std::vector<std::string> entries;
  for (const auto& [variable, value] : settings)
    entries.push_back(fmt::format("{}={}", variable, value));
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  OptionProblems problems;
  read_options(pointers.data(), problems);
  for (const OptionProblem& problem : problems)
    throw invalid_value(problem.variable, problem.value,
                        fmt::format("Use {}.", accepted_by(problem.variable)));
}

}  // namespace

processes::Attached attach_with_settings(pid_t pid, const std::string& mode,
                                         const std::string& limit, const std::string& directory) {
  const Settings settings = settings_of(mode, limit, directory);
  check(settings);
  return processes::attach_to(pid, processes::find_library(), settings);
}

}  // namespace oomrec::tools::commands
