// Who is told what the watcher sees happen: figures for Prometheus, alerts.
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

  // A recording was found; its file is still there, also when its process has died already.
  // `in_sight`: its pid means the same here.
  virtual void began(const bundles::Session&, bool in_sight) = 0;

  // Its process is gone. `recovered`: what became of the recording; null: its own process removed
  // it.
  virtual void ended(const std::filesystem::path& recording,
                     const bundles::Recovered* recovered) = 0;

  // Memory is what the machine waits for; `bundle` is of the largest process, empty where none was
  // written this time.
  virtual void short_of_memory(const std::filesystem::path& recording,
                               const std::filesystem::path& bundle) = 0;

  // There may be new bundles.
  virtual void looked() = 0;
};

}  // namespace oomrec::tools::service
