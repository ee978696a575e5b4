// Finalizes a dead process: recovers its recording into a bundle, reports the bundle, and runs the
// user's command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/recover/on_oom.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/deaths/death_observer.h"
#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

class Finalizer {
 public:
  // `report` gets a line for each bundle. `on_oom_exec` runs after an OOM death (on_oom.h).
  Finalizer(std::function<void(const std::string&)> report, bundles::OnOomCommand on_oom_exec,
            Listener& listener);

  bundles::RecoveryResult finalize_dead_process(bundles::Session session,
                                                const deaths::DeathObservation& observed,
                                                bundles::UnknownEnds unknown) const;

 private:
  void report_bundle(const bundles::Session& session,
                     const bundles::RecoveryResult& recovered) const;

  const std::function<void(const std::string&)> report_;
  const bundles::OnOomCommand on_oom_exec_;
  Listener& listener_;
};

// Forwards the watcher's notifications to several listeners.
class Listeners final : public Listener {
 public:
  // `listener` must outlive this object.
  void add(Listener& listener) { all_.push_back(&listener); }

  void on_found(const bundles::Session& session, bool same_pid_namespace) override {
    for (Listener* const listener : all_) listener->on_found(session, same_pid_namespace);
  }
  void on_gone(const std::filesystem::path& recording,
               const bundles::RecoveryResult* recovered) override {
    for (Listener* const listener : all_) listener->on_gone(recording, recovered);
  }
  void on_memory_pressure(const std::filesystem::path& recording,
                          const std::filesystem::path& bundle) override {
    for (Listener* const listener : all_) listener->on_memory_pressure(recording, bundle);
  }
  void on_scan() override {
    for (Listener* const listener : all_) listener->on_scan();
  }

 private:
  std::vector<Listener*> all_;
};

}  // namespace oomrec::tools::service
