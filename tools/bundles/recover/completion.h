// Completes a bundle: adds how its process ended, once that is known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tools/bundles/recover/dead_process.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

// What the event that triggered the bundle led to.
enum class BundleEvent : std::uint8_t {
  led_to_end,    // the process ended because of it
  was_survived,  // the process recovered, and ended later
};

struct CompletionResult {
  bool written = false;
  bool with_crash = false;  // the verdict is now the crash that followed the bundle's failure
};

// If the event led to the end, the verdict becomes the death, provided that it outranks a failure
// (a kill by the kernel, a SIGBUS in full shared memory) or is a crash that follows the bundle's
// failure. `recording`: of the same process.
CompletionResult complete_bundle(const std::filesystem::path& bundle,
                                 const recording::Recording& recording,
                                 const deaths::Ending& ending, BundleEvent event);

// Of the bundle of a process that a signal has ended, or whose exit status is unknown: `change`
// adds to the evidence, and the verdict follows. False: the bundle is another one, its process
// ended more than ten minutes ago or before this boot, or it may not be written.
bool change_evidence(const std::filesystem::path& bundle,
                     const std::function<void(session::EndLevels&)>& change);

// Bundles of a dead process: those that it wrote itself, before its end was known, and what a
// reader made that died before it had removed the recording.
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
