// Sets up the services that run in the poll loop of `oomrec watch`: metrics over HTTP or as a file,
// alerts, and the shipping of bundles.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/service/alerts/alerts.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/process_registry.h"
#include "tools/service/fleet/signature_counts.h"
#include "tools/service/metrics/server.h"
#include "tools/service/metrics/textfile.h"
#include "tools/service/ship/shipper.h"
#include "tools/service/watch/watcher.h"

namespace oomrec::tools::service {

struct ServiceOptions {
  std::string metrics, textfile;          // empty: off
  std::string alert_exec, alert_webhook;  // empty: off
  unsigned alert_percent = 10;            // alerts when less of a limit is left
  ShipOptions ship;

  bool wants_alerts() const { return !alert_exec.empty() || !alert_webhook.empty(); }
  bool wants_any() const {
    return !metrics.empty() || !textfile.empty() || wants_alerts() || ship.wants_any();
  }
};

class Services {
 public:
  // Adds the requested services to `watcher`; this object must outlive its run(). `environment`:
  // for the commands that they run. `report` gets the URL of the metrics.
  Services(const ServiceOptions& options, const WatchedDirectories& directories,
           const Environment& environment, const Watcher::Report& report, Watcher& watcher);

  // Call after the watcher's run(): ships what is left.
  void finish();

 private:
  const std::chrono::seconds ship_timeout_;
  ProcessRegistry registry_;
  SignatureCounts signatures_;  // used with metrics
  std::optional<MetricsServer> server_;
  std::optional<Textfile> textfile_;
  std::optional<Alerts> alerts_;
  std::optional<Shipper> shipper_;
};

}  // namespace oomrec::tools::service
