// `oomrec recover`: bundles of the recordings that dead processes left.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec recover                        every recording of yours whose process is dead\n"
    "  OOMREC_SESSION_DIR=/data/oom oomrec recover\n";

}  // namespace

int recover_command(const Words& words) {
  Arguments arguments{
      "recover", "[OPTIONS]",
      "Makes bundles of the recordings of dead processes: those that were refused memory, "
      "were killed for it, or held 16 MiB or more. Others are removed. Bundles go where their "
      "program was "
      "told to write them.",
      kExamples};
  bool json = false;
  arguments.flag("--json", json,
                 "print {\"schema_version\", \"bundles\": [PATH…], \"removed\": N}");
  if (!arguments.parse(words)) return code(Exit::shown);

  Json made = Json::array();
  std::uint64_t removed = 0;
  bool problems = false;
  for (const bundles::Session& session : bundles::sessions_of(bundles::dump_directories())) {
    if (session.alive) continue;
    bundles::Recovered recovered;
    try {
      recovered = bundles::recover(session, {});
    } catch (const Error& error) {
      recovered.problem = error.what();
    }
    if (!recovered.problem.empty()) {
      remark(recovered.problem);
      problems = true;
    }
    if (recovered.what == bundles::Recovery::removed) ++removed;
    if (recovered.what != bundles::Recovery::made && recovered.what != bundles::Recovery::completed)
      continue;
    made.push_back(recovered.bundle.string());
    if (!json) fmt::print("process {}: {}\n", session.pid, printable(recovered.bundle.string()));
  }
  if (json) print_json({{"schema_version", 1}, {"bundles", made}, {"removed", removed}});
  if (!json && removed != 0) {
    fmt::print("{} that held nothing of note {} removed\n",
               plural(removed, "recording", "recordings"), removed == 1 ? "was" : "were");
  }
  if (!made.empty() || removed != 0) return code(Exit::shown);
  if (json || problems) return code(Exit::nothing_found);
  throw Error{Exit::nothing_found, "no dead process left a recording",
              "Recordings in a directory of their own are found with OOMREC_SESSION_DIR=DIR."};
}

}  // namespace oomrec::tools::commands
