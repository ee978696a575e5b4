// `oomrec simulate KIND`: what a user gets to see for a verdict, without waiting for the death.
//
// A recorded child, this command itself, makes it happen in truth and in small; the bundle is
// marked as simulated.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/processes/launch/self.h"
#include "tools/processes/simulate/kinds.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec simulate --list\n"
    "  oomrec simulate soft_limit\n"
    "  oomrec simulate --dump-dir /tmp/dumps fork_failed\n";

constexpr const char* kChild = "--child";  // for ourselves

const processes::SimulatedKind& kind_of(const std::string& word) {
  std::vector<std::string_view> names;
  for (const processes::SimulatedKind& kind : processes::simulated_kinds()) {
    if (name_of(kind.code) == word) return kind;
    names.push_back(name_of(kind.code));
  }
  const std::string_view meant = nearest(word, names);
  throw Error{
      Exit::bad_input,
      word.empty() ? "no kind was named" : fmt::format("'{}' cannot be simulated", printable(word)),
      meant.empty() ? std::string{"`oomrec simulate --list` lists what can be."}
                    : fmt::format("Did you mean `oomrec simulate {}`?", meant)};
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const processes::SimulatedKind& kind : processes::simulated_kinds())
    names.emplace_back(name_of(kind.code));
  return names;
}

void list_kinds(bool json) {
  Json rows = Json::array();
  for (const processes::SimulatedKind& kind : processes::simulated_kinds()) {
    if (json)
      rows.push_back({{"kind", name_of(kind.code)}, {"how", kind.how}});
    else
      fmt::print("{:<27}{}\n", name_of(kind.code), kind.how);
  }
  if (json) print_json({{"schema_version", 1}, {"kinds", rows}});
}

// Whatever is set for other runs: only what the kind needs is in force.
void forget_settings() {
  for (const char* variable : {"OOMREC_LIMIT", "OOMREC_LIMIT_AS", "OOMREC_LIMIT_GPU", "OOMREC_FAIL",
                               "OOMREC_ON_OOM", "OOMREC_ON_OOM_EXEC", "OOMREC_KERNEL_LOG"})
    unsetenv(variable);
}

// No bundle of a true death makes room for this one.
std::vector<std::string> run_options(const processes::SimulatedKind& kind,
                                     const std::string& dump_dir) {
  std::vector<std::string> options = {"--mode",      "sampled", "--quiet",        "--children", "1",
                                      "--max-dumps", "0",       "--max-total-mb", "0"};
  if (!dump_dir.empty()) options.insert(options.end(), {"--dump-dir", dump_dir});
  options.insert(options.end(), kind.options.begin(), kind.options.end());
  return options;
}

std::string bundle_of(const processes::Ended& ended, const processes::SimulatedKind& kind) {
  const std::vector<bundles::BundleSummary> bundles =
      bundles::bundles_in(bundles::dump_directories());
  const auto found =
      std::find_if(bundles.begin(), bundles.end(), [&](const bundles::BundleSummary& bundle) {
        return bundle.pid == static_cast<std::uint64_t>(ended.pid) &&
               bundle.verdict == name_of(kind.code);
      });
  if (found != bundles.end()) return found->path.string();
  throw Error{Exit::nothing_found,
              fmt::format("{} did not come about here: no bundle says so", name_of(kind.code)),
              "Limits, a sandbox or another preloaded library may be in the way; `oomrec info` "
              "tells those in force."};
}

}  // namespace

int simulate_command(const Words& words) {
  if (words.size() == 2 && words[0] == kChild) {
    kind_of(words[1]).act();
    return EXIT_FAILURE;  // as a program that cannot go on
  }
  Arguments arguments{"simulate", "[OPTIONS] KIND",
                      "Makes a verdict happen in a small process of its own, and says where the "
                      "bundle is. It is marked as simulated: its reason says so.",
                      kExamples};
  std::string word;
  std::string dump_dir;
  bool list = false;
  bool json = false;
  arguments.positional("KIND", word, "the code of a verdict", kind_names());
  arguments.flag("--list", list, "list the kinds");
  arguments.option("--dump-dir", "DIR", dump_dir, "where the bundle goes [oom_dumps]");
  arguments.flag("--json", json, "print {\"schema_version\", \"kind\", \"bundle\"}, or the list");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (list) {
    list_kinds(json);
    return code(Exit::shown);
  }

  const processes::SimulatedKind& kind = kind_of(word);
  forget_settings();
  std::optional<processes::Stage> stage;
  if (kind.cgroup) stage.emplace(*kind.cgroup);
  const processes::Ended ended = processes::run_self(
      run_options(kind, dump_dir), {"simulate", kChild, word}, {{"OOMREC_SIMULATED", "1"}});
  const std::string bundle = bundle_of(ended, kind);
  if (json)
    print_json({{"schema_version", 1}, {"kind", word}, {"bundle", bundle}});
  else
    fmt::print("{}\nread it with: oomrec show {}\n", printable(bundle),
               shell_word(printable(bundle)));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
