// Applies the alert rules, and passes each alert to the notifiers.
//
// The watcher notifies it of deaths and pressure. It checks the limits of all processes once a
// second.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/hysteresis.h"
#include "tools/service/alerts/incident.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/process_registry.h"

namespace oomrec::tools::service {

// Limits the rate of alerts: each rule alerts at most once a minute. The next alert lists the
// incidents in between.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kBetweenAlerts = std::chrono::minutes{1};  // of one rule
  static constexpr std::size_t kMostAlso = 20;

  void add(Incident incident);

  // Returns the alerts that are due, and removes them.
  std::vector<Alert> take_due(Clock::time_point now);
  std::optional<Clock::time_point> due() const;  // when the next one is due

 private:
  struct Waiting {
    std::optional<Alert> alert = {};
    std::optional<Clock::time_point> last = {};  // empty: never
    Clock::time_point due() const { return last ? *last + kBetweenAlerts : Clock::time_point{}; }
  };
  std::map<Rule, Waiting> waiting_;
};

class Alerts : public Listener, public PollClient {
 public:
  // Add it to the watcher after the registry. `least_headroom`: alerts when less than this
  // fraction, 0…1, of a limit or of a GPU's memory is left.
  Alerts(ProcessRegistry& registry, std::vector<Notifier> notifiers, double least_headroom);

  NotifierProcesses& notifier_processes() { return notifier_processes_; }

  void on_death(const Death& death);

  void on_found(const bundles::Session&, bool) override {}
  void on_gone(const std::filesystem::path& recording, const bundles::RecoveryResult*) override;
  void on_memory_pressure(const std::filesystem::path& recording,
                          const std::filesystem::path& bundle) override;
  void on_scan() override {}
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  void check_limit(const MonitoredProcess& process);
  void check_devices();
  // True if the share that is left of `key` has fallen below the least headroom just now.
  bool is_new_shortage(const std::string& key, double ratio);
  enum class ProcessState : std::uint8_t { running, ended };
  void check_failures(const MonitoredProcess& process, ProcessState state);
  void send(const Alert& alert);

  // The failures of a process that were reported so far, and its newest bundle at that time.
  struct ReportedFailures {
    std::uint64_t count = 0;
    std::filesystem::path bundle = {};
    unsigned samples_waited = 0;  // for the bundle of unreported failures
  };

  ProcessRegistry& registry_;
  const std::vector<Notifier> notifiers_;
  const double least_headroom_;
  const std::uint64_t watch_start_ns_;  // since 1970
  NotifierProcesses notifier_processes_;
  RateLimit rate_limit_;
  Hysteresis<std::string> shortages_;  // by recording, and by device
  std::map<std::filesystem::path, ReportedFailures> reported_failures_;  // by recording
  Clock::time_point next_check_{};
};

}  // namespace oomrec::tools::service
