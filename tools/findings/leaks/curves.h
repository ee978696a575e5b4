// What groups of stacks held at each checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/findings/leaks/growth.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/checkpoints.h"

namespace oomrec::tools::findings {

// Holders whose stacks read alike, in one space.
struct StackGroup {
  recording::StackId stack = 0;  // the one that holds most
  Space space = Space::heap;
  bool estimated = false;
  std::vector<std::uint32_t> holders;  // entries in `holders`
  std::uint64_t live_bytes = 0, live_count = 0, total_bytes = 0;
  std::optional<std::uint64_t> oldest_ns;  // of the session's clock
};

// Of holders with live bytes; in no order.
std::vector<StackGroup> groups_of(const std::vector<recording::HolderFigures>& holders,
                                  recording::Stacks& stacks);

// Adds `part` to `sum`; the stack is the one of both that holds more.
void add(StackGroup& sum, const StackGroup& part);

// Since the recording began. Ticks read a coarse clock: the first may be a little before that.
double seconds_of(std::uint64_t time_ns, const recording::Recording& recording);

class Curves {
 public:
  explicit Curves(const recording::Recording& recording);

  std::size_t checkpoints() const { return checkpoints_.size(); }
  double seconds() const;  // from the first to the last

  // Whether a holder was ever among the largest: of others no curve is known.
  bool list(std::uint32_t holder) const {
    return holder < by_holder_.size() && !by_holder_[holder].empty();
  }

  // Without the checkpoints whose lists were full of larger holders: what the group held then is
  // not known.
  HeldCurve of(const StackGroup& group) const;

 private:
  double at_seconds(const recording::Checkpoint& checkpoint) const;

  const recording::Recording& recording_;
  std::vector<recording::Checkpoint> checkpoints_;
  // By holder: the checkpoints that list it, and what it held.
  struct Known {
    std::uint32_t checkpoint;
    std::uint64_t bytes;
  };
  std::vector<std::vector<Known>> by_holder_;
};

}  // namespace oomrec::tools::findings
