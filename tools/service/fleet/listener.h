// The interface through which the watcher notifies metrics and alerts.
#pragma once

#include <filesystem>

#include "tools/bundles/recover/orphans.h"

namespace oomrec::tools::service {

class Listener {
 public:
  Listener() = default;
  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // A new recording was found. Its file still exists, even if its process is dead already.
  virtual void on_found(const bundles::Session&, bool same_pid_namespace) = 0;

  // The process is gone. `recovered`: what recovery did with the recording; null: the process
  // deleted it itself.
  virtual void on_gone(const std::filesystem::path& recording,
                       const bundles::RecoveryResult* recovered) = 0;

  // The machine is under memory pressure. `recording`: of the largest process. `bundle`: of that
  // process; empty if none was written this time.
  virtual void on_memory_pressure(const std::filesystem::path& recording,
                                  const std::filesystem::path& bundle) = 0;

  // The watcher has scanned the directories: there may be new bundles.
  virtual void on_scan() = 0;
};

}  // namespace oomrec::tools::service
