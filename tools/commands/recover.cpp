// `oomrec recover`: makes bundles of the recordings of dead processes.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec recover                        your recordings of dead processes\n"
    "  OOMREC_SESSION_DIR=/data/oom oomrec recover\n"
    "  oomrec recover --quiet                in an epilog, which must not fail\n";

}  // namespace

int recover_command(const Words& words) {
  Arguments arguments{"recover", "[OPTIONS]",
                      "Turns recordings of dead processes into bundles, if they were refused "
                      "memory, were killed for it, or were killed otherwise and held 16 MiB or "
                      "more. Removes the others, but leaves those of 16 MiB or more whose end "
                      "nobody saw for a day. Bundles go to each program's own dump directory.",
                      kExamples};
  bool json = false;
  arguments.flag("--json", json,
                 "print {\"schema_version\", \"bundles\": [PATH…], \"removed\": N, \"left\": N}");
  bool unknown = false;
  arguments.flag("--unknown", unknown,
                 "also of processes of 16 MiB or more about whose end nothing is known");
  bool quiet = false;
  arguments.flag("--quiet", quiet,
                 "print no bundles, and exit 0 if no dead process left a recording");
  if (!arguments.parse(words)) return code(Exit::shown);

  Json made = Json::array();
  std::uint64_t removed = 0, left = 0;
  bool problems = false;
  const bool lists = !json && !quiet;
  bundles::recover_all(
      unknown ? bundles::UnknownEnds::keep : bundles::UnknownEnds::leave,
      [&](const bundles::Session& session, const bundles::RecoveryResult& recovered) {
        if (!recovered.problem.empty()) {
          remark(recovered.problem);
          problems = true;
        }
        if (recovered.action == bundles::RecoveryAction::removed) ++removed;
        if (recovered.action == bundles::RecoveryAction::unseen) ++left;
        if (!recovered.has_bundle()) return;
        made.push_back(recovered.bundle.string());
        if (lists)
          fmt::print("process {}: {}\n", session.pid, printable(recovered.bundle.string()));
      });
  if (json)
    print_json({{"schema_version", 1}, {"bundles", made}, {"removed", removed}, {"left", left}});
  if (lists && removed != 0) {
    fmt::print("{} that held nothing of note {} removed\n",
               plural(removed, "recording", "recordings"), removed == 1 ? "was" : "were");
  }
  if (lists && left != 0) {
    fmt::print(
        "{} whose end nobody saw {} left: nothing points to memory; oomrec recover "
        "--unknown makes {} of {}\n",
        plural(left, "recording", "recordings"), left == 1 ? "was" : "were",
        left == 1 ? "a bundle" : "bundles", left == 1 ? "it" : "them");
  }
  if (!made.empty() || removed != 0 || left != 0) return code(Exit::shown);
  if (quiet && !problems) return code(Exit::shown);
  if (json || problems) return code(Exit::nothing_found);
  throw Error{Exit::nothing_found, "no dead process left a recording",
              "For recordings in another directory, set OOMREC_SESSION_DIR=DIR."};
}

}  // namespace oomrec::tools::commands
