// Selects nodes of the trie of stacks and the largest holders for a smaller recording, and
// renumbers them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "common/bundle/largest.h"
#include "common/session/view.h"

namespace oomrec::bundle {

// One bit for each selected node, in the caller's memory.
class NodeSelection {
 public:
  NodeSelection(const session::View& view, std::span<std::uint64_t> bits,
                std::span<std::uint32_t> ranks) noexcept
      : view_(view), bits_(bits), ranks_(ranks) {}

  void clear() noexcept {
    std::fill(bits_.begin(), bits_.end(), 0);
    bits_[0] = 1;  // node 0 remains entry 0
  }

  void select(std::uint32_t node) noexcept {
    for (node = nearest_within_capacity(node); node != 0 && !is_selected(node);
         node = nearest_within_capacity(parent_of(node)))
      bits_[node / 64] |= std::uint64_t{1} << (node % 64);
  }

  // Call after the last select(), before the first renumbered().
  void rank() noexcept {
    std::uint32_t total = 0;
    for (std::size_t word = 0; word < bits_.size(); ++word) {
      if (word % kWordsPerRank == 0) ranks_[word / kWordsPerRank] = total;
      total += static_cast<std::uint32_t>(std::popcount(bits_[word]));
    }
    total_ = total;
  }

  std::uint32_t total() const noexcept { return total_; }
  bool is_selected(std::uint32_t node) const noexcept {
    return (bits_[node / 64] >> (node % 64)) & 1;
  }

  std::uint32_t renumbered(std::uint32_t node) const noexcept {
    node = nearest_within_capacity(node);
    const std::size_t word = node / 64;
    std::uint32_t rank = ranks_[word / kWordsPerRank];
    for (std::size_t i = word / kWordsPerRank * kWordsPerRank; i < word; ++i)
      rank += static_cast<std::uint32_t>(std::popcount(bits_[i]));
    const std::uint64_t below = (std::uint64_t{1} << (node % 64)) - 1;
    return rank + static_cast<std::uint32_t>(std::popcount(bits_[word] & below));
  }

  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(bits_.size() * 64); }

  static constexpr std::size_t kWordsPerRank = 64;

 private:
  std::uint32_t parent_of(std::uint32_t node) const noexcept {
    session::Node entry{};
    // A parent has a lower number than its child; anything else is damage and ends the walk.
    return view_.read(session::TableId::nodes, node, entry) && entry.parent < node ? entry.parent
                                                                                   : 0;
  }

  // The nearest ancestor within the bitmap: stacks beyond its first million nodes are cut.
  std::uint32_t nearest_within_capacity(std::uint32_t node) const noexcept {
    while (node >= capacity()) node = parent_of(node);
    return node;
  }

  const session::View& view_;
  std::span<std::uint64_t> bits_;
  std::span<std::uint32_t> ranks_;
  std::uint32_t total_ = 0;
};

// The largest holders.
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
