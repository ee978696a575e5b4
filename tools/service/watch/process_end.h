// Waits for the end of a process that is not our child, with a pidfd. Since Linux 6.15
// (PIDFD_GET_INFO), it also returns how the process ended.
#pragma once

#include <optional>

#include "common/session/layout.h"

namespace oomrec::tools::service {

class ProcessEnd {
 public:
  ProcessEnd() = default;
  ~ProcessEnd();
  ProcessEnd(ProcessEnd&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  ProcessEnd& operator=(ProcessEnd&&) = delete;

  // Without a descriptor for a process of another pid namespace, or if its pid was reused.
  static ProcessEnd of(const session::Header&);

  // Whether this kernel supports wait_status(). Tests set OOMREC_NO_PIDFD_INFO=1 to make it false.
  static bool has_wait_status();

  // Becomes readable at the end; −1: none.
  int descriptor() const { return descriptor_; }

  // After the end: the status as wait() returns it. Empty if the parent has not waited for the
  // process, or the kernel does not report it.
  std::optional<int> wait_status() const;

 private:
  explicit ProcessEnd(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace oomrec::tools::service
