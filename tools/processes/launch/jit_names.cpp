#include "tools/processes/launch/jit_names.h"

#include <cstdlib>
#include <string_view>

namespace oomrec::tools::processes {
namespace {

// The options that make a runtime keep a map of its code for perf (common/names/perf_map.h), and
// give each function that it interprets code of its own. docs/commands/run.md: what they cost, and
// which releases were tried.
struct Runtime {
  const char* variable;  // to which the options are added
  std::string_view options;
};
constexpr Runtime kRuntimes[] = {
    {"NODE_OPTIONS", "--perf-basic-prof-only-functions --interpreted-frames-native-stack"},
    {"JAVA_TOOL_OPTIONS",
     "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+IgnoreUnrecognizedVMOptions "
     "-XX:+DumpPerfMapAtExit"},
    {"DOTNET_PerfMapEnabled", "1"},
};

}  // namespace

Settings jit_name_settings() {
  Settings settings;
  for (const Runtime& runtime : kRuntimes) {
    const char* const present = std::getenv(runtime.variable);
    const std::string_view before = present != nullptr ? present : "";
    if (before.find(runtime.options) != before.npos) continue;
    settings.emplace_back(runtime.variable, before.empty() ? std::string{runtime.options}
                                                           : std::string{before} + ' ' +
                                                                 std::string{runtime.options});
  }
  return settings;
}

}  // namespace oomrec::tools::processes
