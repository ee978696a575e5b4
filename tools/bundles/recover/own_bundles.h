// Bundles of a dead process: those that it wrote itself, before its end was known, and what a
// reader made that died before it had removed the recording.
#pragma once

#include <filesystem>

#include "tools/bundles/recover/dead_process.h"

namespace oomrec::tools::bundles {

struct OwnBundles {
  bool any = false;
  std::filesystem::path completed;  // the newest with a failure, if this call completed it
  bool crash_recorded = false;      // one of them now contains the crash
  std::filesystem::path with_end;   // a reader has added how the process ended
};

// Adds the end of the process to each bundle without one that is this user's. If a bundle is
// missing, waits for the process's helper, which may still be writing it.
OwnBundles complete_own_bundles(const DeadProcess& process);

}  // namespace oomrec::tools::bundles
