#include "recorder/live/holder_sums.h"

namespace oomrec::live {

using session::HolderSum;

bool HolderSums::grow_at_once(InHook hook, HolderTable& holders, std::uint32_t node, Api api,
                              std::uint64_t bytes) noexcept {
  const std::uint32_t holder = holders.find_or_add(hook, node, Space::heap, api, 0);
  if (holder != 0) holders.grow(hook, holder, bytes, 1);
  return holder != 0;
}

void HolderSums::shrink_at_once(InHook hook, HolderTable& holders, std::uint32_t node,
                                std::uint64_t bytes, bool temporary) noexcept {
  const std::uint32_t holder = holders.find_or_add(hook, node, Space::heap, Api::none, 0);
  if (holder == 0) return;
  holders.shrink(hook, holder, bytes, 1);
  if (temporary) holders.add_temporary(hook, holder, 1);
}

void HolderSums::settle(InHook hook, HolderTable& holders) noexcept {
  if (sums_ == nullptr) return;
  const std::uint32_t now = peak_epoch();
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    if (sums_[at].counts.load(std::memory_order_relaxed) != 0) settle(hook, holders, sums_[at]);
  }
  epoch_ = now;
  lane_->sums_epoch.store(now, std::memory_order_relaxed);
}

// Finds the holder now, not when the sum is settled, because a reader needs every sum's holder.
HolderSum* HolderSums::assign(InHook hook, HolderTable& holders, HolderSum& sum, std::uint32_t node,
                              Api api) noexcept {
  const std::uint32_t holder = holders.find_or_add_brief(hook, node, Space::heap, api);
  if (holder == 0 || !settle(hook, holders, sum)) return nullptr;
  sum.holder.store(0, std::memory_order_relaxed);
  sum.node.store(node, std::memory_order_relaxed);
  sum.holder.store(holder, std::memory_order_release);
  return &sum;
}

}  // namespace oomrec::live
