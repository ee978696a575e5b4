#include "tools/service/watch/services.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "tools/service/metrics/endpoint.h"
#include "tools/service/metrics/exposition.h"

namespace oomrec::tools::service {
namespace {

std::vector<Notifier> notifiers_for(const ServiceOptions& options, const Environment& environment) {
  std::vector<Notifier> notifiers;
  if (!options.alert_exec.empty())
    notifiers.push_back(command_notifier(options.alert_exec, environment));
  if (!options.alert_webhook.empty()) notifiers.push_back(webhook_notifier(options.alert_webhook));
  return notifiers;
}

}  // namespace

Services::Services(const ServiceOptions& options, const WatchedDirectories& directories,
                   const Environment& environment, const Watcher::Report& report, Watcher& watcher)
    : registry_(directories) {
  const auto page_since = [this](std::optional<Watcher::Clock::time_point> last_scrape) {
    registry_.sample();
    return std::make_shared<const std::string>(exposition(registry_.rows(), last_scrape));
  };
  const auto page = [page_since] { return page_since({}); };
  watcher.add_listener(registry_);
  watcher.add_client(registry_);
  if (!options.metrics.empty()) {
    ListeningSockets listening = listen_at(endpoint_in(options.metrics));
    report(fmt::format("metrics: {}", listening.url));
    watcher.add_client(server_.emplace(std::move(listening), page_since));
  }
  if (!options.textfile.empty()) {
    watcher.add_client(textfile_.emplace(options.textfile, page));
    registry_.on_change([this] { textfile_->write_soon(); });
  }
  if (options.wants_alerts()) {
    alerts_.emplace(registry_, notifiers_for(options, environment), options.alert_percent / 100.0);
    registry_.on_death([this](const Death& death) { alerts_->on_death(death); });
    watcher.add_listener(*alerts_);
    watcher.add_client(*alerts_);
    watcher.add_client(alerts_->notifier_processes());
  }
}

}  // namespace oomrec::tools::service
