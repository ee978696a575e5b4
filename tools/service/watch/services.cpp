#include "tools/service/watch/services.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <vector>

#include "common/verdict/kinds.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
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

// Where bundles may be from before the watch began. With a DIR for recordings, too, programs write
// them into their own dump directories.
std::set<std::filesystem::path> directories_of_bundles(const WatchedDirectories& watched) {
  std::set<std::filesystem::path> directories{watched.dumps.begin(), watched.dumps.end()};
  for (const std::vector<std::filesystem::path>& more :
       {watched.of_sessions(), bundles::dump_directories()})
    directories.insert(more.begin(), more.end());
  return directories;
}

}  // namespace

Services::Services(const ServiceOptions& options, const WatchedDirectories& directories,
                   const Environment& environment, const Watcher::Report& report, Watcher& watcher)
    : ship_timeout_(options.ship.timeout_s), registry_(directories) {
  const auto page_since = [this](std::optional<Watcher::Clock::time_point> last_scrape) {
    registry_.sample();
    const ShipFigures* const shipped = shipper_ ? &shipper_->figures() : nullptr;
    return std::make_shared<const std::string>(
        exposition(registry_.rows(), last_scrape, shipped, &signatures_.counts()));
  };
  const auto page = [page_since] { return page_since({}); };
  watcher.add_listener(registry_);
  watcher.add_client(registry_);
  const bool has_metrics = !options.metrics.empty() || !options.textfile.empty();
  if (has_metrics) watcher.add_client(signatures_);
  registry_.on_death([this, has_metrics](const Death& death) {
    if (has_metrics && death.certainty && verdict::is_death_related_to_memory(death.verdict))
      signatures_.add(death.bundle);
    if (alerts_) alerts_->on_death(death);
  });
  if (options.ship.wants_any()) {
    shipper_.emplace(options.ship.settings(), directories_of_bundles(directories));
    watcher.add_listener(*shipper_);
    watcher.add_client(*shipper_);
  }
  if (!options.metrics.empty()) {
    ListeningSockets listening = listen_at(endpoint_in(options.metrics));
    report(fmt::format("metrics: {}", listening.url));
    watcher.add_client(server_.emplace(std::move(listening), page_since));
  }
  if (!options.textfile.empty()) {
    watcher.add_client(textfile_.emplace(options.textfile, page));
    registry_.on_change([this] { textfile_->write_soon(); });
    signatures_.on_change([this] { textfile_->write_soon(); });
    if (shipper_) shipper_->on_change([this] { textfile_->write_soon(); });
  }
  if (options.wants_alerts()) {
    alerts_.emplace(registry_, notifiers_for(options, environment), options.alert_percent / 100.0);
    watcher.add_listener(*alerts_);
    watcher.add_client(*alerts_);
    watcher.add_client(alerts_->notifier_processes());
  }
}

void Services::finish() {
  if (!shipper_) return;
  const std::size_t left = shipper_->empty(Watcher::Clock::now() + ship_timeout_);
  if (left != 0)
    remark(fmt::format("--ship: {} left; the next watch or oomrec recover --ship sends {}",
                       plural(left, "bundle or life is", "bundles or lives are"),
                       left == 1 ? "it" : "them"));
}

}  // namespace oomrec::tools::service
