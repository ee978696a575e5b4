// Selects the largest holders for a smaller recording, and renumbers them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/bundle/largest.h"

namespace oomrec::bundle {

template <std::size_t kMax>
class HolderSelection {
 public:
  void select(const session::View& view) noexcept {
    count_ = static_cast<std::uint32_t>(find_largest(view, largest_));
    for (std::uint32_t i = 0; i < count_; ++i) by_holder_[i] = {largest_[i].holder, i + 1};
    std::sort(by_holder_, by_holder_ + count_,
              [](const Number& a, const Number& b) { return a.before < b.before; });
  }

  // The selected holders, largest first; numbered from 1 in this order.
  std::span<const LargestHolder> rows() const noexcept { return {largest_, count_}; }

  // 0: not selected.
  std::uint32_t renumbered(std::uint32_t holder) const noexcept {
    const std::span<const Number> numbers{by_holder_, count_};
    const auto at = std::lower_bound(
        numbers.begin(), numbers.end(), holder,
        [](const Number& number, std::uint32_t before) { return number.before < before; });
    return at != numbers.end() && at->before == holder ? at->now : 0;
  }

 private:
  struct Number {
    std::uint32_t before, now;
  };
  LargestHolder largest_[kMax];
  Number by_holder_[kMax];
  std::uint32_t count_;
};

}  // namespace oomrec::bundle
