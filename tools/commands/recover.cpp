// `oomrec recover`: makes bundles of the recordings of dead processes.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>

#include "tools/base/arguments.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/service/ship/ledger.h"
#include "tools/service/ship/shipper.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kRecoverExamples =
    "  oomrec recover                        your recordings of dead processes\n"
    "  OOMREC_SESSION_DIR=/data/oom oomrec recover\n"
    "  oomrec recover --quiet                in an epilog, which must not fail\n"
    "  oomrec recover --ship s3://oom/prod   and send what has not arrived yet to a store\n";

// Without those that later ones have displaced, as retention has it.
Json still_there(const Json& made) {
  Json kept = Json::array();
  for (const Json& bundle : made) {
    std::error_code error;
    if (std::filesystem::exists(bundle.text(), error)) kept.push_back(bundle);
  }
  if (const std::size_t gone = made.size() - kept.size(); gone != 0)
    remark(
        fmt::format("{} deleted again: a dump directory keeps OOMREC_MAX_DUMPS bundles (5), of "
                    "OOMREC_MAX_TOTAL_MB (256)",
                    plural(gone, "of these bundles was", "of these bundles were")));
  return kept;
}

// Where bundles are that have not arrived yet: with those of this run, which may be elsewhere.
std::set<std::filesystem::path> spools(const Json& made) {
  const std::vector<std::filesystem::path> dumps = bundles::dump_directories();
  std::set<std::filesystem::path> directories{dumps.begin(), dumps.end()};
  for (const Json& bundle : made)
    directories.insert(std::filesystem::path{bundle.text()}.parent_path());
  return directories;
}

// Returns the number of bundles and rows of lives that are left.
std::size_t ship(const service::ShipOptions& options, const Json& made) {
  service::Shipper shipper{options.settings(), spools(made)};
  const std::size_t left =
      shipper.empty(service::Shipper::Clock::now() + std::chrono::seconds{options.timeout_s});
  if (left != 0) {
    remark(fmt::format("--ship: {} left after {} s; run it again",
                       plural(left, "bundle or life is", "bundles or lives are"),
                       options.timeout_s));
  }
  return left;
}

}  // namespace

int recover_command(const Words& words) {
  Arguments arguments{"recover", "[OPTIONS]",
                      "Turns recordings of dead processes into bundles, if they were refused "
                      "memory, were killed for it, or were killed otherwise and held 16 MiB or "
                      "more. Removes the others, but leaves those of 16 MiB or more whose "
                      "exit status is unknown for a day. Bundles go to each program's own dump "
                      "directory.",
                      kRecoverExamples};
  bool json = false;
  arguments.flag("--json", json,
                 "print {\"schema_version\", \"bundles\": [PATH…], \"removed\": N, \"left\": N, "
                 "\"unshipped\": N}");
  bool unknown = false;
  arguments.flag("--unknown", unknown,
                 "also of processes of 16 MiB or more about whose end nothing is known");
  bool quiet = false;
  arguments.flag("--quiet", quiet,
                 "print no bundles, and exit 0 if no dead process left a recording");
  service::ShipOptions shipping;
  shipping.timeout_s = 30;
  shipping.add_to(arguments, "try for so long (30); exit code 1 if something is left then");
  if (!arguments.parse(words)) return code(Exit::shown);
  shipping.check(arguments);

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
        if (shipping.wants_any()) service::Ledger{recovered.bundle.parent_path()}.begin();
        if (lists)
          fmt::print("process {}: {}\n", session.pid, printable(recovered.bundle.string()));
      });
  made = still_there(made);
  std::optional<std::size_t> unshipped;
  if (shipping.wants_any()) unshipped = ship(shipping, made);
  if (json)
    print_json({{"schema_version", 1},
                {"bundles", made},
                {"removed", removed},
                {"left", left},
                {"unshipped", unshipped}});
  if (lists && removed != 0) {
    fmt::print("{} that held nothing of note {} removed\n",
               plural(removed, "recording", "recordings"), removed == 1 ? "was" : "were");
  }
  if (lists && left != 0) {
    fmt::print(
        "{} with an unknown exit status {} left: no evidence of a memory problem; oomrec recover "
        "--unknown makes {} of {}\n",
        plural(left, "recording", "recordings"), left == 1 ? "was" : "were",
        left == 1 ? "a bundle" : "bundles", left == 1 ? "it" : "them");
  }
  if (unshipped) return code(*unshipped == 0 ? Exit::shown : Exit::in_part);
  if (!made.empty() || removed != 0 || left != 0) return code(Exit::shown);
  if (quiet && !problems) return code(Exit::shown);
  if (json || problems) return code(Exit::nothing_found);
  throw Error{Exit::nothing_found, "no dead process left a recording",
              "For recordings in another directory, set OOMREC_SESSION_DIR=DIR."};
}

}  // namespace oomrec::tools::commands
