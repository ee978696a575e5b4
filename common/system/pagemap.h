// The kernel's page table of this process, /proc/self/pagemap: what resident_pages.h and
// guard_regions.h read.
#pragma once

#include <fcntl.h>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::system {

// Not open: there is no /proc, or it may not be read.
inline File open_pagemap() noexcept {
  char path[sizeof g_roots.proc + 16];
  Text(path) << g_roots.proc << "/self/pagemap";
  return File::open(path, O_RDONLY);
}

}  // namespace oomrec::system
