// A recorded process under watch, and the end of it, which is not our child's: by a pidfd. Since
// Linux 6.15 (PIDFD_GET_INFO) that also tells how the process ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

#include "common/session/layout.h"
#include "tools/base/descriptor.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/deaths/death_observer.h"

namespace oomrec::tools::service {

class ProcessEnd {
 public:
  ProcessEnd() = default;

  // Without a descriptor for a process of another pid namespace, or if its pid was reused.
  static ProcessEnd of(const session::Header&);

  // Whether this kernel supports wait_status(). Tests set OOMREC_NO_PIDFD_INFO=1 to make it false.
  static bool has_wait_status();

  // Becomes readable at the end; −1: none.
  int descriptor() const { return descriptor_; }

  // After the end: the status as wait() returns it. Empty if the kernel does not report it. Of an
  // exit with 0 it does so only once the parent has waited for the process.
  std::optional<int> wait_status() const;

 private:
  explicit ProcessEnd(int descriptor, pid_t process = 0, std::uint64_t start_ticks = 0)
      : descriptor_(descriptor), process_(process), start_ticks_(start_ticks) {}

  Descriptor descriptor_;
  pid_t process_ = 0;
  std::uint64_t start_ticks_ = 0;
};

// A recorded process under watch.
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
