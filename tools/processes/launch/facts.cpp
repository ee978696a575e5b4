#include "tools/processes/launch/facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tools/base/directory.h"
#include "tools/base/foreign_file.h"
#include "tools/base/json.h"
#include "tools/base/programs.h"
#include "tools/base/text.h"
#include "tools/deaths/counters.h"

namespace oomrec::tools::processes {
namespace {

constexpr unsigned kTimeout_s = 20;  // for the recorder to report

// Runs without input and output; kills the program if it takes too long.
void run_quietly(const std::string& path, const std::vector<std::string>& words,
                 const Settings& settings) {
  const std::vector<char*> arguments = arguments_of(words);
  const pid_t child = fork();
  if (child == 0) {
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int descriptor : {0, 1, 2}) dup2(nothing, descriptor);
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    // The recorder ends the program at once. Without the recorder, this does.
    alarm(kTimeout_s);
    execv(path.c_str(), arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
}

// The program may have written into its report itself. Empty if it is too long.
std::string contents_of(const std::string& report) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  try {
    return read_foreign_file(ForeignPath::named(report), kMostBytes);
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace

std::vector<Fact> facts_of(const std::string& path, const std::vector<std::string>& words,
                           const Settings& settings) {
  const TemporaryDirectory scratch;
  const std::string report = scratch.path() / "report";
  Settings with_report = settings;
  with_report.emplace_back("OOMREC_INFO", report);
  run_quietly(path, words, with_report);

  std::vector<Fact> facts;
  const std::string text = contents_of(report);
  for (const std::string_view line : split(text, '\n')) {
    const Json row = parse_json(line);
    const auto name = text_of(row, "fact");
    if (!name) continue;
    const Json& active = member(row, "active");
    facts.push_back({*name, active.is_boolean() ? std::optional{active.get<bool>()} : std::nullopt,
                     text_of(row, "detail").value_or("")});
  }
  return facts;
}

std::string python_support(const std::vector<Fact>& facts) {
  const auto python =
      std::ranges::find_if(facts, [](const Fact& fact) { return fact.name == "python"; });
  if (python == facts.end() || !python->active) return {};
  return fmt::format("Python {}{}", python->detail,
                     *python->active ? ": its stacks are read" : "; its stacks are not read");
}

std::vector<SystemLimit> limits_in_force() {
  std::vector<SystemLimit> limits;
  const auto add_rlimit = [&](const char* name, auto resource) {
    struct rlimit limit {};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      limits.push_back({name, limit.rlim_cur});
    }
  };
  add_rlimit("rlimit_as", RLIMIT_AS);
  add_rlimit("rlimit_data", RLIMIT_DATA);
  if (const std::uint64_t bytes = deaths::cgroup_limit_of(0); bytes != 0)
    limits.push_back({"cgroup", bytes});
  return limits;
}

}  // namespace oomrec::tools::processes
