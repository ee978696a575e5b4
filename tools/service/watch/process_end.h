// Waits for the end of a process that is not our child, with a pidfd. Since Linux 6.15
// (PIDFD_GET_INFO), it also returns how the process ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "common/session/layout.h"

namespace oomrec::tools::service {

class ProcessEnd {
 public:
  ProcessEnd() = default;
  ~ProcessEnd();
  ProcessEnd(ProcessEnd&& other) noexcept
      : descriptor_(other.descriptor_), process_(other.process_), start_ticks_(other.start_ticks_) {
    other.descriptor_ = -1;
  }
  ProcessEnd& operator=(ProcessEnd&&) = delete;

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

  int descriptor_ = -1;
  pid_t process_ = 0;
  std::uint64_t start_ticks_ = 0;
};

}  // namespace oomrec::tools::service
