// `oomrec ls`: the bundles of the dump directory, and with --all the recordings that are in none.
#include <fmt/format.h>
#include <unistd.h>

#include "tools/base/arguments.h"
#include "tools/base/log.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec ls                     bundles in ./oom_dumps or OOMREC_DUMP_DIR, the newest first\n"
    "  oomrec ls /var/oom            bundles in /var/oom\n"
    "  oomrec ls --all               recordings of running and dead processes too\n"
    "  oomrec ls --json | jq -r .bundles[].bundle\n";

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : printable(text); }

void print_bundles(const std::vector<bundles::BundleSummary>& bundles, const Terminal& terminal) {
  const std::string header = fmt::format("{:<20} {:<17} {:<25} {:<11} {:<12} {:>10}", "created",
                                         "trigger", "verdict", "outcome", "program", "size");
  fmt::print("{}\n", terminal.paint(Colour::bold, header));
  for (const bundles::BundleSummary& bundle : bundles) {
    fmt::print("{:<20} {:<17} {:<25} {:<11} {:<12} {:>10}\n",
               clip(or_unknown(bundle.created_at_utc), 20), clip(or_unknown(bundle.trigger), 17),
               clip(or_unknown(bundle.verdict), 25), clip(or_unknown(bundle.outcome), 11),
               clip(or_unknown(bundle.program), 12), size_text(bundle.bytes));
    fmt::print("  {}\n", terminal.paint(Colour::dim,
                                        clip_start(printable(bundle.path.string()), kColumns - 2)));
  }
}

void print_sessions(const std::vector<bundles::Session>& sessions, const Terminal& terminal) {
  fmt::print("{}\n", terminal.paint(Colour::bold, "recordings"));
  for (const bundles::Session& session : sessions) {
    fmt::print("  {:<8} {:>8}  {}\n", session.alive ? "running" : "dead", session.pid,
               clip_start(printable(session.path.string()), kColumns - 21));
  }
}

Json bundle_json(const bundles::BundleSummary& bundle) {
  return {
      {"bundle", bundle.path.string()},
      {"created_at_utc", text_or_null(bundle.created_at_utc)},
      {"trigger", text_or_null(bundle.trigger)},
      {"verdict", text_or_null(bundle.verdict)},
      {"outcome", text_or_null(bundle.outcome)},
      {"program", text_or_null(bundle.program)},
      {"pid", bundle.pid != 0 ? Json(bundle.pid) : Json(nullptr)},
      {"bytes", bundle.bytes},
  };
}

Json session_json(const bundles::Session& session) {
  return {{"recording", session.path.string()}, {"pid", session.pid}, {"alive", session.alive}};
}

template <class Row>
Json rows_json(const std::vector<Row>& rows, Json (*json_of)(const Row&)) {
  Json array = Json::array();
  for (const Row& row : rows) array.push_back(json_of(row));
  return array;
}

std::vector<std::filesystem::path> directories_of(const std::string& named) {
  if (named.empty()) return bundles::dump_directories();
  std::error_code error;
  if (!std::filesystem::is_directory(named, error)) {
    throw Error{Exit::bad_input, fmt::format("{} is no directory", printable(named)),
                "Give the directory that holds the bundles."};
  }
  return {std::filesystem::absolute(named).lexically_normal()};
}

// What only its owner sees would seem not to be there.
void tell_closed(const std::filesystem::path& directory) {
  const std::vector<std::filesystem::path> closed = bundles::closed_bundles_in(directory);
  if (closed.empty()) return;
  remark(
      fmt::format("{} may not be read: Permission denied{}", printable(closed[0].string()),
                  closed.size() == 1 ? "" : fmt::format(", nor may {} more", closed.size() - 1)));
}

}  // namespace

int ls_command(const Words& words) {
  Arguments arguments{
      "ls", "[OPTIONS] [DIR]",
      "Lists the bundles of a dump directory. Recordings of dead processes that belong "
      "there are made bundles first.",
      kExamples};
  std::string named;
  bool json = false;
  bool all = false;
  arguments.positional("DIR", named, "a dump directory (./oom_dumps or OOMREC_DUMP_DIR)");
  arguments.flag("--all", all, "recordings of running and dead processes too");
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  if (!arguments.parse(words)) return code(Exit::shown);

  const std::vector<std::filesystem::path> directories = directories_of(named);
  // What is removed because it held little is listed once more; what becomes a bundle is not.
  std::vector<bundles::Session> sessions =
      all ? bundles::sessions_of(directories) : std::vector<bundles::Session>{};
  for (const std::filesystem::path& told : bundles::recover_orphans(directories))
    std::erase_if(sessions, [&](const bundles::Session& session) { return session.path == told; });
  const std::vector<bundles::BundleSummary> bundles = bundles::bundles_in(directories);
  for (const std::filesystem::path& directory : directories) {
    if (bundles.empty()) bundles::refuse_unreadable(directory);
    tell_closed(directory);
  }
  if (json) {
    print_json({{"schema_version", 1},
                {"bundles", rows_json(bundles, bundle_json)},
                {"recordings", all ? rows_json(sessions, session_json) : Json(nullptr)}});
    return code(bundles.empty() && sessions.empty() ? Exit::nothing_found : Exit::shown);
  }
  const Terminal terminal{STDOUT_FILENO};
  if (!bundles.empty()) print_bundles(bundles, terminal);
  if (!bundles.empty() && !sessions.empty()) fmt::print("\n");
  if (!sessions.empty()) print_sessions(sessions, terminal);
  if (!bundles.empty() || !sessions.empty()) return code(Exit::shown);
  throw Error{Exit::nothing_found,
              fmt::format("there is no bundle in {}",
                          directories.empty() ? "./oom_dumps" : printable(directories[0].string())),
              "Record a program: oomrec run -- PROGRAM"};
}

}  // namespace oomrec::tools::commands
