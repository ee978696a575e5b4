// `oomrec ls`: lists the bundles of a dump directory, and with --all recordings without a bundle.
#include <fmt/format.h>
#include <unistd.h>

#include "tools/base/arguments.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/sections/bundle_list.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kLsExamples =
    "  oomrec ls                     bundles in ./oom_dumps or OOMREC_DUMP_DIR, the newest first\n"
    "  oomrec ls /var/oom            bundles in /var/oom\n"
    "  oomrec ls --all               recordings of running and dead processes too\n"
    "  oomrec ls --json | jq -r .bundles[].bundle\n";

std::vector<std::filesystem::path> directories_of(const std::string& named) {
  if (named.empty()) return bundles::dump_directories();
  std::error_code error;
  if (!std::filesystem::is_directory(named, error)) {
    throw Error{Exit::bad_input, fmt::format("{} is not a directory", printable(named)),
                "Give the directory that holds the bundles."};
  }
  return {std::filesystem::absolute(named).lexically_normal()};
}

// Otherwise a bundle that only its owner may read would seem not to exist.
void report_closed_bundles(const std::filesystem::path& directory) {
  const std::vector<std::filesystem::path> closed = bundles::unreadable_bundles_in(directory);
  if (closed.empty()) return;
  remark(fmt::format("cannot read {}: Permission denied{}", printable(closed[0].string()),
                     closed.size() == 1 ? "" : fmt::format(" (and {} more)", closed.size() - 1)));
}

}  // namespace

int ls_command(const Words& words) {
  Arguments arguments{"ls", "[OPTIONS] [DIR]",
                      "Lists the bundles in a dump directory, after turning recordings of dead "
                      "processes that belong there into bundles.",
                      kLsExamples};
  std::string named;
  bool json = false;
  bool all = false;
  arguments.positional("DIR", named, "a dump directory (./oom_dumps or OOMREC_DUMP_DIR)");
  arguments.flag("--all", all, "also list recordings of running and dead processes");
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  if (!arguments.parse(words)) return code(Exit::shown);

  const std::vector<std::filesystem::path> directories = directories_of(named);
  sections::BundleList list;
  // A recording that is removed because it held little is still listed; one that becomes a bundle
  // is not.
  if (all) list.recordings = bundles::sessions_of(directories);
  for (const std::filesystem::path& path : bundles::recover_orphans(directories)) {
    std::erase_if(list.recordings,
                  [&](const bundles::Session& session) { return session.path == path; });
  }
  list.bundles = bundles::bundles_in(directories);
  for (const std::filesystem::path& directory : directories) {
    if (list.bundles.empty()) bundles::require_readable(directory);
    report_closed_bundles(directory);
  }
  if (json) {
    print_json({{"schema_version", 1},
                {"bundles", sections::bundles_json(list)},
                {"recordings", all ? sections::recordings_json(list) : Json(nullptr)}});
    return code(list.empty() ? Exit::nothing_found : Exit::shown);
  }
  if (list.empty()) {
    const std::string where =
        directories.empty() ? "./oom_dumps" : printable(directories[0].string());
    throw Error{Exit::nothing_found, fmt::format("there is no bundle in {}", where),
                "Record a program: oomrec run -- PROGRAM"};
  }
  sections::print_bundle_list(list, Terminal{STDOUT_FILENO});
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
