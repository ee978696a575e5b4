// `oomrec watch`: a service that writes bundles of processes that die or run out of memory, serves
// figures for Prometheus, and sends alerts.
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/lives.h"
#include "tools/service/fleet/new_bundles.h"
#include "tools/service/watch/services.h"
#include "tools/service/watch/watcher.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kWatchExamples =
    "  oomrec watch                        every recorded process of yours, until SIGTERM\n"
    "  oomrec watch /var/lib/oomrec        recordings in this directory (OOMREC_SESSION_DIR)\n"
    "  oomrec watch --once                 what is dead now, then exit\n"
    "  oomrec watch --on-oom-exec 'oomrec show %b | mail -s \"%p is dead\" me'\n"
    "  oomrec watch --metrics 9464         for Prometheus, at http://127.0.0.1:9464/metrics\n"
    "  oomrec watch --alert-exec 'jq -r .text | mail -s oomrec me'\n"
    "  oomrec watch --ship s3://oom/prod   a row of each death to a store, bundles of some\n";

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void check(const service::ServiceOptions& options, const Arguments& arguments) {
  if (arguments.given("--once") && options.wants_any()) {
    throw Error{Exit::bad_input,
                "--once ends at once: it serves no metrics, sends no alerts and ships nothing",
                "Leave --once out to run it as a service. oomrec recover --ship ships once."};
  }
  options.ship.check(arguments);
  if (arguments.given("--alert-percent") && !options.wants_alerts()) {
    throw Error{Exit::bad_input, "--alert-percent needs a way to send alerts",
                "Add --alert-exec or --alert-webhook."};
  }
  if (options.alert_percent == 0 || options.alert_percent > 90) {
    throw Error{Exit::bad_input,
                fmt::format("--alert-percent {} is not between 1 and 90", options.alert_percent),
                "10 alerts when less than 10 % of a limit is left."};
  }
}

}  // namespace

int watch_command(const Words& words) {
  Arguments arguments{
      "watch", "[OPTIONS] [DIR]",
      "Watches recorded processes from outside: a bundle within a second of each death, and one of "
      "the largest when the machine waits for memory. Bundles go to each program's own dump "
      "directory. Serves figures for Prometheus, alerts, and ships bundles to a store.",
      kWatchExamples};
  std::string directory;
  bool once = false;
  arguments.positional("DIR", directory, "a directory of recordings (those that oomrec chooses)");
  arguments.flag("--once", once, "write bundles of what is dead now, and exit (0: some, 1: none)");
  std::string command;
  arguments.option(
      "--on-oom-exec", "COMMAND", command,
      "run COMMAND by sh for each process that was killed for its memory; %p or $1: pid, "
      "%b or $2: the bundle");
  service::ServiceOptions options;
  arguments.option("--metrics", "[ADDR:]PORT", options.metrics,
                   "serve figures for Prometheus at http://ADDR:PORT/metrics (ADDR: loopback)");
  arguments.option("--textfile", "DIR", options.textfile,
                   "write them to DIR/oomrec.prom, for node exporter's textfile collector");
  arguments.option(
      "--alert-exec", "COMMAND", options.alert_exec,
      "run COMMAND by sh for each alert, with the alert as JSON on its standard input");
  arguments.option("--alert-webhook", "URL", options.alert_webhook,
                   "post each alert as JSON to URL (https: by curl)");
  arguments.option("--alert-percent", "N", options.alert_percent,
                   "alert when less than N % of a limit, or of a GPU's memory, is left (10)");
  options.ship.add_to(arguments, "at SIGTERM, try for so long to ship what is left (20)");
  if (!arguments.parse(words)) return code(Exit::shown);
  service::WatchedDirectories directories{bundles::dump_directories(),
                                          bundles::session_directory_from_environment()};
  service::Environment environment;  // for the commands that it runs
  if (!directory.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) {
      throw Error{Exit::bad_input, fmt::format("{} is not a directory", printable(directory)),
                  "Give the directory that OOMREC_SESSION_DIR names."};
    }
    const std::filesystem::path only = bundles::absolute_directory(directory);
    directories = {.dumps = {only}, .named_session = only, .only_named = true};
    environment = {{"OOMREC_SESSION_DIR", directories.named_session.string()}};
  }
  check(options, arguments);
  const auto every_death =
      options.ship.wants_any() ? service::EveryDeath::yes : service::EveryDeath::no;
  service::Watcher watcher{directories, print_line, {command, environment}, every_death};
  if (std::optional<service::Lives> lives = service::Lives::from_environment())
    watcher.write_lives(std::move(*lives));
  if (once) return code(watcher.finalize_once() != 0 ? Exit::shown : Exit::nothing_found);
  std::optional<service::Services> services;
  if (options.wants_any()) services.emplace(options, directories, environment, print_line, watcher);
  watcher.run();
  if (services) services->finish();
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
