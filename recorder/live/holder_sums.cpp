#include "recorder/live/holder_sums.h"

#include <atomic>

#include "recorder/session/node_states.h"

namespace oomrec::live {

using session::HolderSum;

bool HolderSums::grow_at_once(InHook hook, HolderTable& holders, std::uint32_t node, Api api,
                              std::uint64_t bytes) noexcept {
  const std::uint32_t holder = holders.find_or_add_brief(hook, node, Space::heap, api);
  return holder != 0 && holders.add(hook, holder, {bytes, 0, 1, 0, 0});
}

void HolderSums::shrink_at_once(InHook hook, HolderTable& holders, std::uint32_t node,
                                std::uint64_t bytes, bool temporary) noexcept {
  const std::uint32_t holder = holders.find_or_add_brief(hook, node, Space::heap, Api::none);
  if (holder != 0) holders.add(hook, holder, {0, bytes, 0, 1, temporary ? 1u : 0u});
}

void HolderSums::flush(InHook hook, HolderTable& holders) noexcept {
  if (sums_ == nullptr) return;
  const std::uint32_t now = peak_epoch();
  for (std::uint32_t at = 0; at <= mask_; ++at) {
    if (sums_[at].counts.load(std::memory_order_relaxed) != 0) flush(hook, holders, sums_[at]);
  }
  epoch_ = now;
  lane_->sums_epoch.store(now, std::memory_order_relaxed);
}

// Finds the holder now, not when the sum is flushed, because a reader needs every sum's holder.
HolderSum* HolderSums::assign(InHook hook, HolderTable& holders, HolderSum& sum, std::uint32_t node,
                              Api api) noexcept {
  const std::uint32_t holder = holders.find_or_add_brief(hook, node, Space::heap, api);
  if (holder == 0 || !flush(hook, holders, sum)) return nullptr;
  sum.holder.store(0, std::memory_order_relaxed);
  // Whoever forgets sees that the other node is gone from here only with what its holder has got.
  sum.node.store(node, std::memory_order_release);
  // It stays while a sum has it. A round that begins meanwhile sees it here, or this thread claims
  // it in the era of that round: a thread that frees a block has announced nothing.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  session::g_node_states.touch(node);
  sum.holder.store(holder, std::memory_order_release);
  return &sum;
}

}  // namespace oomrec::live
