// Memory of a GPU, asked of the driver that is installed: opened by name, its documented functions
// alone, no vendor's header.
#pragma once

#include <cstdint>
#include <string>

#include "common/session/vocabulary.h"

namespace oomrec::tools::processes {

class Gpu {
 public:
  // `space`: cuda or hip. Throws Error where there is no driver or no such device.
  Gpu(Space space, unsigned ordinal);

  // Empty: it is ours until the process ends. Else the driver's word for why not.
  std::string allocate(std::uint64_t bytes) const;

 private:
  int (*allocate_)(void** block, std::size_t bytes);
  Space space_;
};

}  // namespace oomrec::tools::processes
