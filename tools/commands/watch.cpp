// `oomrec watch`: a service that makes bundles of what dies, and of what is about to; that has
// figures for Prometheus, and alerts.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/service/alerts/alerts.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/process_registry.h"
#include "tools/service/metrics/exposition.h"
#include "tools/service/metrics/server.h"
#include "tools/service/metrics/textfile.h"
#include "tools/service/watch/watcher.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec watch                        every recorded process of yours, until SIGTERM\n"
    "  oomrec watch /var/lib/oomrec        recordings in this directory (OOMREC_SESSION_DIR)\n"
    "  oomrec watch --once                 what is dead now, and no more\n"
    "  oomrec watch --on-oom-exec 'oomrec show %b | mail -s \"%p is dead\" me'\n"
    "  oomrec watch --metrics 9464         for Prometheus, at http://127.0.0.1:9464/metrics\n"
    "  oomrec watch --alert-exec 'jq -r .text | mail -s oomrec me'\n";

constexpr unsigned kDefaultPercent = 10;

struct Wishes {
  std::string metrics, textfile;          // empty: not wanted
  std::string alert_exec, alert_webhook;  // likewise
  unsigned alert_percent = kDefaultPercent;

  bool wants_alerts() const { return !alert_exec.empty() || !alert_webhook.empty(); }
  bool wants_any() const { return !metrics.empty() || !textfile.empty() || wants_alerts(); }
};

void tell(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void check(const Wishes& wishes, bool once, bool percent_given) {
  if (once && wishes.wants_any()) {
    throw Error{Exit::bad_input, "--once looks at what is dead, and ends: nothing is served then",
                "Leave --once out, and let it run as a service."};
  }
  if (percent_given && !wishes.wants_alerts()) {
    throw Error{Exit::bad_input, "--alert-percent says when to alert, and nobody is to be told",
                "Add --alert-exec or --alert-webhook."};
  }
  if (wishes.alert_percent == 0 || wishes.alert_percent > 90) {
    throw Error{Exit::bad_input,
                fmt::format("--alert-percent {} is not between 1 and 90", wishes.alert_percent),
                "10 alerts when less than 10 % of a limit is left."};
  }
}

std::vector<service::Courier> couriers_for(const Wishes& wishes) {
  std::vector<service::Courier> couriers;
  if (!wishes.alert_exec.empty()) couriers.push_back(service::command_courier(wishes.alert_exec));
  if (!wishes.alert_webhook.empty())
    couriers.push_back(service::webhook_courier(wishes.alert_webhook));
  return couriers;
}

// What watches beside the watcher, as far as it is wanted.
class Company {
 public:
  Company(const Wishes& wishes, service::Watcher& watcher) : census_(bundles::dump_directories()) {
    const auto page_since = [this](std::optional<service::Watcher::Clock::time_point> last_scrape) {
      census_.look();
      return std::make_shared<const std::string>(service::exposition(census_.rows(), last_scrape));
    };
    const auto page = [page_since] { return page_since({}); };
    watcher.tell_also(census_);
    watcher.attend_also(census_);
    if (!wishes.metrics.empty()) {
      service::Listening listening = service::listen_at(service::endpoint_in(wishes.metrics));
      tell(fmt::format("metrics: {}", listening.url));
      watcher.attend_also(server_.emplace(std::move(listening), page_since));
    }
    if (!wishes.textfile.empty()) {
      watcher.attend_also(textfile_.emplace(wishes.textfile, page));
      census_.on_change([this] { textfile_->write_soon(); });
    }
    if (wishes.wants_alerts()) {
      alerts_.emplace(census_, couriers_for(wishes), wishes.alert_percent / 100.0);
      census_.on_death([this](const service::Death& death) { alerts_->on_death(death); });
      watcher.tell_also(*alerts_);
      watcher.attend_also(*alerts_);
      watcher.attend_also(alerts_->deliveries());
    }
  }

 private:
  service::Census census_;
  std::optional<service::MetricsServer> server_;
  std::optional<service::Textfile> textfile_;
  std::optional<service::Alerts> alerts_;
};

}  // namespace

int watch_command(const Words& words) {
  Arguments arguments{
      "watch", "[OPTIONS] [DIR]",
      "Watches recorded processes from outside: a bundle within a second of each death, and one of "
      "the largest when the machine waits for memory. Bundles go where their program was told to "
      "write them. Serves figures for Prometheus, and alerts.",
      kExamples};
  std::string directory;
  bool once = false;
  arguments.positional("DIR", directory,
                       "a directory of recordings (those that oomrec chooses by itself)");
  arguments.flag("--once", once, "make bundles of what is dead now, and end (0: some, 1: none)");
  std::string command;
  arguments.option("--on-oom-exec", "COMMAND", command,
                   "run COMMAND by sh for each process that was killed for its memory; %p pid, %b "
                   "the bundle");
  Wishes wishes;
  arguments.option("--metrics", "[ADDR:]PORT", wishes.metrics,
                   "serve figures for Prometheus at http://ADDR:PORT/metrics (ADDR: loopback)");
  arguments.option("--textfile", "DIR", wishes.textfile,
                   "write them to DIR/oomrec.prom, for node exporter's textfile collector");
  arguments.option(
      "--alert-exec", "COMMAND", wishes.alert_exec,
      "run COMMAND by sh for each alert, with the alert as JSON on its standard input");
  arguments.option("--alert-webhook", "URL", wishes.alert_webhook,
                   "post each alert as JSON to URL (https: by curl)");
  arguments.option("--alert-percent", "N", wishes.alert_percent,
                   "alert when less than N % of a limit, or of a GPU's memory, is left (10)");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (!directory.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) {
      throw Error{Exit::bad_input, fmt::format("{} is no directory", printable(directory)),
                  "Give the directory that OOMREC_SESSION_DIR names."};
    }
    setenv("OOMREC_SESSION_DIR", std::filesystem::absolute(directory).c_str(), 1);
  }
  check(wishes, once, arguments.given("--alert-percent"));
  service::Watcher watcher{bundles::dump_directories(), tell, command};
  if (once) return code(watcher.look_once() != 0 ? Exit::shown : Exit::nothing_found);
  std::optional<Company> company;
  if (wishes.wants_any()) company.emplace(wishes, watcher);
  watcher.run();
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
