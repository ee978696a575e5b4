// Alerts about what the watcher sees: which troubles there are, by the rules, and to whom they are
// brought.
//
// Deaths and pressure are told by the watcher. How near processes are to their limits nobody tells:
// once a second each is looked at.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/service/alerts/notifier_processes.h"
#include "tools/service/alerts/rate_limit.h"
#include "tools/service/fleet/process_registry.h"

namespace oomrec::tools::service {

class Alerts : public Listener, public Attendant {
 public:
  // Is told of what happens after the census. `least_headroom`: part 0…1 of a limit, or of a GPU's
  // memory, below which it is near.
  Alerts(Census& census, std::vector<Courier> couriers, double least_headroom);

  Deliveries& deliveries() { return deliveries_; }

  void on_death(const Death& death);

  void began(const bundles::Session&, bool) override {}
  void ended(const std::filesystem::path& recording, const bundles::Recovered*) override;
  void short_of_memory(const std::filesystem::path& recording,
                       const std::filesystem::path& bundle) override;
  void looked() override {}
  std::optional<Clock::time_point> wakes_at() const override;
  void attend(std::span<const pollfd>) override;

 private:
  void look_at_limit(const Subject& subject);
  void look_at_devices();
  void look_at_failures(const Subject& subject, bool has_ended);
  void send(const Alert& alert);

  // What has been told of a process's refusals, and its newest bundle then.
  struct Refusals {
    std::uint64_t count = 0;
    std::filesystem::path bundle = {};
    unsigned looks_waited = 0;  // for the bundle of those that are not told yet
  };

  Census& census_;
  const std::vector<Courier> couriers_;
  const double least_headroom_;
  const std::uint64_t began_ns_;  // since 1970
  Deliveries deliveries_;
  Pace pace_;
  Hysteresis hysteresis_;
  std::map<std::filesystem::path, Refusals> refusals_;  // by recording
  Clock::time_point looks_at_{};
};

}  // namespace oomrec::tools::service
