// Forwards the watcher's notifications to several listeners.
#pragma once

#include <vector>

#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

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
