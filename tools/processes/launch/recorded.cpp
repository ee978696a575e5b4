#include "tools/processes/launch/recorded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/machine/java_frames.h"
#include "common/program/suitability.h"
#include "common/session/layout.h"
#include "common/system/files.h"
#include "tools/base/environment.h"
#include "tools/base/text.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/processes/launch/library.h"

namespace oomrec::tools::processes {
namespace {

// As an option accepts it: "512M".
std::string size_word(std::uint64_t bytes) {
  constexpr std::string_view kSuffixes = "TGMK";
  unsigned shift = 10 * static_cast<unsigned>(kSuffixes.size());
  for (const char suffix : kSuffixes) {
    if (bytes % (std::uint64_t{1} << shift) == 0)
      return fmt::format("{}{}", bytes >> shift, suffix);
    shift -= 10;
  }
  return std::to_string(bytes);
}

}  // namespace

std::string options_without_effect(const Options& options) {
  std::vector<std::string> given;
  for (const OptionRow& row : option_rows())
    if (row.scope == OptionScope::program && is_chosen(options, row.id))
      given.push_back(row.flag());
  if (given.empty()) return {};
  std::string line = fmt::format("{} {} no effect on it", fmt::join(given, ", "),
                                 given.size() == 1 ? "has" : "have");
  if (options.limit != 0)
    line += fmt::format("; to bound its memory, use --cgroup {0} or --limit-as {0}",
                        size_word(options.limit));
  return line;
}

std::string dump_directory_problem(const Options& options) {
  const std::string named = options.dump_dir;
  if (!options.is_named(OptionId::dump_dir) || named.find('%') != std::string::npos) return {};
  // It is made when the first bundle is written.
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(named, error);
  while (!std::filesystem::exists(existing, error) && existing != existing.parent_path())
    existing = existing.parent_path();
  errno = 0;
  if (!std::filesystem::is_directory(existing, error))
    errno = ENOTDIR;
  else if (access(existing.c_str(), W_OK | X_OK) == 0)
    return {};
  return fmt::format(
      "{}: {}; bundles will go beside the recordings instead (oomrec info says where)",
      printable(named), std::strerror(errno));
}

std::string why_unrecordable(const std::string& path) {
  const program::Suitability found = program::inspect(path.c_str()).suitability;
  return found == program::Suitability::suitable ? std::string{}
                                                 : std::string{program::meaning_of(found)};
}

bool preloads_its_children(const std::string& path) {
  return program::inspect(path.c_str()).suitability == program::Suitability::static_linked;
}

namespace {

// A run within a run is part of the outer one's.
std::string process_tree() {
  if (std::string outer = environment_variable(kProcessTreeVariable); !outer.empty()) return outer;
  return bundles::name_of_run(getpid(), system::realtime_ns());
}

// The options that make a runtime keep a map of its code for perf (common/names/perf_map.h), and
// give each function that it interprets code of its own. docs/commands/run.md: what they cost, and
// which releases were tried.
struct Runtime {
  const char* variable;  // to which the options are added
  std::string_view options;
  char between = ' ';
  bool is_needed = true;
};
constexpr Runtime kRuntimes[] = {
    {"NODE_OPTIONS", "--perf-basic-prof-only-functions --interpreted-frames-native-stack"},
    {"DENO_V8_FLAGS", "--perf-basic-prof-only-functions,--interpreted-frames-native-stack", ','},
    {"JAVA_TOOL_OPTIONS",
     "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions "
     "-XX:+IgnoreUnrecognizedVMOptions -XX:+DumpPerfMapAtExit",
     ' ', !machine::kKnowsJavaFrames},
    {"DOTNET_PerfMapEnabled", "1"},
};

// `oomrec run --jit-names`: variables for the program, with what the environment has in them
// already.
Settings jit_name_settings() {
  Settings settings;
  for (const Runtime& runtime : kRuntimes) {
    std::string options = environment_variable(runtime.variable);
    if (!runtime.is_needed || options.find(runtime.options) != options.npos) continue;
    if (!options.empty()) options += runtime.between;
    settings.emplace_back(runtime.variable, options.append(runtime.options));
  }
  return settings;
}

}  // namespace

Settings recording_settings(const RunOptions& options) {
  Settings settings = options.settings();
  settings.emplace_back(kProcessTreeVariable, process_tree());
  settings.emplace_back("LD_PRELOAD",
                        preload_value(preloadable_path(find_library()), std::getenv("LD_PRELOAD")));
  if (options.jit_names())
    for (auto& setting : jit_name_settings()) settings.push_back(std::move(setting));
  if (options.in_force().python_objects) settings.emplace_back("PYTHONMALLOC", "malloc");
  return settings;
}

}  // namespace oomrec::tools::processes
