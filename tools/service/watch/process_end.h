// Waits for the end of a process that is not our child, and learns how it ended where the kernel
// tells that to strangers (PIDFD_GET_INFO, Linux 6.15).
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

  // Nothing to poll where the process is not in sight: it runs in another pid namespace, or it is
  // another one of the same number.
  static ProcessEnd of(const session::Header&);

  // Whether this kernel tells strangers. OOMREC_NO_PIDFD_INFO=1 says that it does not, for tests.
  static bool kernel_tells();

  // Readable at the end; −1: there is nothing to poll.
  int descriptor() const { return descriptor_; }

  // After the end, as wait() tells it; nothing where the parent has not waited for it, or the
  // kernel does not tell.
  std::optional<int> wait_status() const;

 private:
  explicit ProcessEnd(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace oomrec::tools::service
