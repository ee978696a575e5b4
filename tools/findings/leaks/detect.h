// Finds the leaks of a recording: stacks whose bytes grow over its checkpoints (growth.h).
//
// First it checks each stack alone, without the interpreter's functions. Then it sums those that do
// not leak by the line or function that requested the memory: a graph of tensors or a tree of
// objects has many small stacks. Memory of the import system stays by design, and is not a leak.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/curves.h"
#include "tools/findings/leaks/growth.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

struct Leak {
  recording::StackId stack = 0;       // the largest of its stacks
  std::size_t stacks = 1;             // more than 1: they grow together, none of them alone
  recording::LocationId subject = 0;  // the line or function that represents it
  Space space = Space::heap;
  std::string device;  // "cuda:0" if all of it is on one device; else empty
  bool estimated = false;
  Growth growth;
  std::uint64_t live_bytes = 0, live_count = 0;  // at the end
  double survivors = 0;                          // bytes live at the end ÷ ever allocated
  std::optional<double> oldest_s;                // age of the oldest block at the end
  double confidence = 0;                         // 0…1
};

// A line or function whose bytes have grown, but not steadily enough for a leak.
struct Unsteady {
  recording::StackId stack = 0;  // the largest of its stacks
  Space space = Space::heap;
  bool estimated = false;
  double bytes = 0;  // of all its stacks, since the first quarter of the time; or until it stopped
  // It grew like a leak, and stopped so long before the last checkpoint, as in a worker that is
  // paused; nothing: it did not.
  std::optional<double> stopped_s;
};

struct DeviceGrowth {
  std::string device;
  Growth growth;
};

struct Leaks {
  std::size_t checkpoints = 0;
  double seconds = 0;                  // from the first checkpoint to the last
  std::optional<double> before_end_s;  // the last, if the process then freed most, and ended
  std::vector<Leak> leaks;             // largest growth first
  std::optional<Unsteady> unsteady;    // if nothing leaks: what has grown most
  std::vector<DeviceGrowth> devices;   // those on which the process's total grows

  bool has_enough_checkpoints() const { return checkpoints >= kFewestMoments; }
  bool detected() const { return !leaks.empty(); }
  // Sums over the spaces that add up. If none of them leaks: over PyTorch's tensors, which are
  // inside them.
  double bytes() const;
  double bytes_per_second() const;
};

// With Until::exit the figures "at the end" are those of the last checkpoint before the exit; the
// numbers of blocks follow from those at the peak, and ages are unknown.
Leaks leaks_of(const recording::Recording& recording, recording::Stacks& stacks,
               const recording::Locations& locations, Until = Until::end);

// What to look at in this source.
Until until_of(const bundles::Source&);

// "high", "medium" or "low".
std::string_view confidence_word(double confidence);

// The leaks of a bundle's process and of its other processes: ranks, workers.
struct ProcessLeaks {
  std::uint64_t pid = 0;
  std::string rank;     // "all" for a merged job; empty: not in a job
  std::string program;  // printable
  std::string bundle;   // name of its bundle; empty: a recording without one
  Leaks leaks;
};

// The source's own process first, with the leaks `own`. Then the others by leaked bytes: the ranks
// of a job, or the processes whose bundles are beside this one.
std::vector<ProcessLeaks> process_leaks(const bundles::Source& source, const Leaks& own);

}  // namespace oomrec::tools::findings
