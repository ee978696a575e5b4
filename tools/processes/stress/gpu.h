// Allocates GPU memory through the installed driver: opens it by name and calls only documented
// functions, without a vendor's header.
#pragma once

#include <cstdint>
#include <string>

#include "common/session/vocabulary.h"

namespace oomrec::tools::processes {

class Gpu {
 public:
  // `space`: cuda or hip. Throws Error if there is no driver or no such device.
  Gpu(Space space, unsigned ordinal);

  // Empty: allocated until the process ends. Else the driver's error name.
  std::string allocate(std::uint64_t bytes) const;

 private:
  int (*allocate_)(void** block, std::size_t bytes);
  Space space_;
};

}  // namespace oomrec::tools::processes
