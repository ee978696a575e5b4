// `oomrec simulate KIND`: shows the bundle of a verdict without waiting for such a death.
//
// The death is real, but small: this command dies of it in a recorded child process. The bundle is
// marked as simulated.
#include <fmt/format.h>

#include <cstdlib>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/simulate/simulation.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kSimulateExamples =
    "  oomrec simulate --list\n"
    "  oomrec simulate soft_limit\n"
    "  oomrec simulate --dump-dir /tmp/dumps fork_failed\n";

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const processes::SimulatedKind& kind : processes::simulated_kinds())
    names.emplace_back(name_of(kind.code));
  return names;
}

void print_kinds() {
  for (const processes::SimulatedKind& kind : processes::simulated_kinds())
    fmt::print("{:<27}{}\n", name_of(kind.code), kind.how);
}

Json kinds_json() {
  Json rows = Json::array();
  for (const processes::SimulatedKind& kind : processes::simulated_kinds())
    rows.push_back({{"kind", name_of(kind.code)}, {"how", kind.how}});
  return {{"schema_version", 1}, {"kinds", rows}};
}

}  // namespace

int simulate_command(const Words& words) {
  if (words.size() == 2 && words[0] == kChildFlag) {
    processes::simulated_kind(words[1]).act();
    return EXIT_FAILURE;  // like a program that cannot continue
  }
  Arguments arguments{"simulate", "[OPTIONS] KIND",
                      "Reproduces a verdict in a small process, and prints where its bundle is. "
                      "The bundle's reason marks it as simulated.",
                      kSimulateExamples};
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
    if (json)
      print_json(kinds_json());
    else
      print_kinds();
    return code(Exit::shown);
  }

  const std::string bundle = processes::simulate(processes::simulated_kind(word),
                                                 {"simulate", kChildFlag, word}, dump_dir);
  if (json)
    print_json({{"schema_version", 1}, {"kind", word}, {"bundle", bundle}});
  else
    fmt::print("{}\nread it with: oomrec show {}\n", printable(bundle),
               shell_word(printable(bundle)));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
