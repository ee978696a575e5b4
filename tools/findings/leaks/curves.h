// Bytes that groups of stacks held at each checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/findings/leaks/growth.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/checkpoints.h"

namespace oomrec::tools::findings {

// Holders in one space whose stacks are equal without the interpreter's functions.
struct StackGroup {
  recording::StackId stack = 0;  // the largest one
  Space space = Space::heap;
  bool estimated = false;
  std::vector<std::uint32_t> holders;  // entries in `holders`
  std::uint64_t live_bytes = 0, live_count = 0, total_bytes = 0;
  std::optional<std::uint64_t> oldest_ns;  // session clock
};

// Groups the holders that have live bytes. Unsorted.
std::vector<StackGroup> groups_of(const std::vector<recording::HolderFigures>& holders,
                                  recording::Stacks& stacks);

// Adds `part` to `sum`, which takes the stack of the larger one.
void add(StackGroup& sum, const StackGroup& part);

// Seconds since the start of the recording. May be slightly negative for the first tick, which
// reads a coarse clock.
double seconds_of(std::uint64_t time_ns, const recording::Recording& recording);

// Up to which moment to look. A process frees most of what it held as it exits, also what it
// leaked.
enum class Until : std::uint8_t { end, exit };

class Curves {
 public:
  Curves(const recording::Recording& recording, Until);

  std::size_t checkpoints() const { return checkpoints_.size(); }
  double seconds() const;  // from the first to the last
  // The last, if that is before the end of the recording: the process freed most after it.
  const recording::Checkpoint* before_exit() const {
    return is_cut_ ? &checkpoints_.back() : nullptr;
  }

  // Whether any checkpoint lists the holder. Without that it has no curve.
  bool has_curve(std::uint32_t holder) const {
    return holder < by_holder_.size() && !by_holder_[holder].empty();
  }

  // Leaves out checkpoints whose lists were full of larger holders: the group's bytes are unknown
  // there.
  HeldCurve of(const StackGroup& group) const;

 private:
  double at_seconds(const recording::Checkpoint& checkpoint) const;

  const recording::Recording& recording_;
  std::vector<recording::Checkpoint> checkpoints_;
  bool is_cut_ = false;
  struct Point {
    std::uint32_t checkpoint;
    std::uint64_t bytes;
  };
  std::vector<std::vector<Point>> by_holder_;  // one for each checkpoint that lists the holder
};

}  // namespace oomrec::tools::findings
