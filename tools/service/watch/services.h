// Sets up the services that run in the poll loop of `oomrec watch`: metrics over HTTP or as a file,
// and alerts.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/service/alerts/alerts.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/process_registry.h"
#include "tools/service/metrics/server.h"
#include "tools/service/metrics/textfile.h"
#include "tools/service/watch/watcher.h"

namespace oomrec::tools::service {

struct ServiceOptions {
  std::string metrics, textfile;          // empty: off
  std::string alert_exec, alert_webhook;  // empty: off
  unsigned alert_percent = 10;            // alerts when less of a limit is left

  bool wants_alerts() const { return !alert_exec.empty() || !alert_webhook.empty(); }
  bool wants_any() const { return !metrics.empty() || !textfile.empty() || wants_alerts(); }
};

class Services {
 public:
  // Adds the requested services to `watcher`; this object must outlive its run(). `environment`:
  // for the commands that they run. `report` gets the URL of the metrics.
  Services(const ServiceOptions& options, const WatchedDirectories& directories,
           const Environment& environment, const Watcher::Report& report, Watcher& watcher);

 private:
  ProcessRegistry registry_;
  std::optional<MetricsServer> server_;
  std::optional<Textfile> textfile_;
  std::optional<Alerts> alerts_;
};

}  // namespace oomrec::tools::service
