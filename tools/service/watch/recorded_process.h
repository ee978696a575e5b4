// A recorded process under watch.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>

#include "tools/bundles/recover/sessions.h"
#include "tools/deaths/level_sampler.h"
#include "tools/service/watch/process_end.h"

namespace oomrec::tools::service {

struct RecordedProcess {
  using Clock = std::chrono::steady_clock;

  // Its pid is valid in our pid namespace, and its end can be polled.
  bool same_pid_namespace() const { return end.descriptor() >= 0; }

  bundles::Session session;
  ProcessEnd end;
  deaths::LevelSampler levels;
  Clock::time_point last_pressure_bundle{};  // never: the epoch
};

using RecordedProcesses = std::map<std::filesystem::path, RecordedProcess>;  // by recording

}  // namespace oomrec::tools::service
