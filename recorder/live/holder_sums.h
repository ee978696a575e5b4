// One thread's changes of heap holders, summed up in its lane before they are published.
//
// All threads with the same stack share a holder. If each event updated it, its cache lines would
// bounce between processors (481 ns an event with two threads, against 23). The sums are in the
// session, where readers add them to the holders' figures (View::for_each_sum). They are flushed,
// that is added to the holder, when another node needs the slot, when a sum is large, at each peak
// step, and ten times a second. Only the lane's owner may call.
#pragma once

#include <cstdint>

#include "common/system/atomics.h"
#include "common/system/hook_scope.h"
#include "recorder/live/holder_table.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

class HolderSums {
 public:
  // Uses the lane's sums, if it has any; without them, every change goes to its holder at once.
  void use(session::Lane& lane, session::HolderSum* sums,
           std::atomic<std::uint32_t>* temporaries) noexcept {
    lane_ = &lane;
    sums_ = sums;
    temporaries_ = temporaries;
    peak_epoch_ =
        &session::g_session.header().spaces[static_cast<std::size_t>(Space::heap)].peak_epoch;
    epoch_ = lane.sums_epoch.load(std::memory_order_relaxed);
    mask_ = sums == nullptr ? 0 : lane.sums - 1;
  }

  // Adds or removes one block of the heap, of the stack `node`; `temporary`: the thread has
  // allocated nothing since that block. False: a table of holders is full.
  bool grow(InHook hook, HolderTable& holders, std::uint32_t node, Api api,
            std::uint64_t bytes) noexcept {
    session::HolderSum* const sum = sum_of(hook, holders, node, api);
    if (sum == nullptr) [[unlikely]]
      return grow_at_once(hook, holders, node, api, bytes);
    grow_present(*sum, bytes);
    if (is_large(*sum)) [[unlikely]]
      flush(hook, holders, *sum);
    return true;
  }
  void shrink(InHook hook, HolderTable& holders, std::uint32_t node, std::uint64_t bytes,
              bool temporary) noexcept {
    session::HolderSum* const sum = sum_of(hook, holders, node, Api::none);
    if (sum == nullptr) [[unlikely]]
      return shrink_at_once(hook, holders, node, bytes, temporary);
    shrink_present(*sum, bytes, temporary);
  }

  bool has_sums() const noexcept { return sums_ != nullptr; }

  // Where the node's sum belongs. If it is there, and nothing needs to be flushed first,
  // is_present() holds, and the changes below are those of grow() and shrink(). The caller of
  // grow_present() first asks is_large().
  session::HolderSum& place_of(std::uint32_t node) const noexcept { return sums_[node & mask_]; }
  bool is_present(const session::HolderSum& sum, std::uint32_t node) const noexcept {
    return sum.node.load(std::memory_order_relaxed) == node && epoch() == peak_epoch();
  }
  static bool is_large(const session::HolderSum& sum) noexcept {
    return sum.allocated_bytes.load(std::memory_order_relaxed) -
               sum.freed_bytes.load(std::memory_order_relaxed) + kLargeSum >=
           2 * kLargeSum;
  }
  static void grow_present(session::HolderSum& sum, std::uint64_t bytes) noexcept {
    add_own(sum.allocated_bytes, bytes);
    add_own(sum.counts, kOneAllocated);
  }
  void shrink_present(session::HolderSum& sum, std::uint64_t bytes, bool temporary) noexcept {
    add_own(sum.freed_bytes, bytes);
    add_own(sum.counts, kOneFreed);
    if (temporary) add_own(temporary_of(sum), std::uint32_t{1});
  }

  // For threads without a lane.
  static bool grow_at_once(InHook, HolderTable&, std::uint32_t node, Api,
                           std::uint64_t bytes) noexcept;
  static void shrink_at_once(InHook, HolderTable&, std::uint32_t node, std::uint64_t bytes,
                             bool temporary) noexcept;

  // Flushes all sums.
  void flush(InHook, HolderTable&) noexcept;

 private:
  static constexpr std::uint64_t kOneAllocated = std::uint64_t{1} << 32, kOneFreed = 1;
  static constexpr std::uint64_t kLargeSum = 64 * 1024;

  std::uint32_t peak_epoch() const noexcept { return peak_epoch_->load(std::memory_order_relaxed); }
  std::uint32_t epoch() const noexcept { return epoch_; }

  std::atomic<std::uint32_t>& temporary_of(const session::HolderSum& sum) const noexcept {
    return temporaries_[&sum - sums_];
  }
  bool flush(InHook hook, HolderTable& holders, session::HolderSum& sum) noexcept {
    return holders.flush(hook, sum, temporary_of(sum), epoch());
  }

  session::HolderSum* sum_of(InHook hook, HolderTable& holders, std::uint32_t node,
                             Api api) noexcept {
    if (sums_ == nullptr) [[unlikely]]
      return nullptr;
    if (epoch() != peak_epoch()) [[unlikely]]
      flush(hook, holders);
    session::HolderSum& sum = sums_[node & mask_];
    if (sum.node.load(std::memory_order_relaxed) == node) [[likely]]
      return &sum;
    return assign(hook, holders, sum, node, api);
  }
  [[gnu::noinline]] session::HolderSum* assign(InHook, HolderTable&, session::HolderSum&,
                                               std::uint32_t node, Api) noexcept;

  session::Lane* lane_;
  const std::atomic<std::uint32_t>* peak_epoch_;
  std::uint32_t epoch_;  // the lane's sums_epoch
  session::HolderSum* sums_;
  std::atomic<std::uint32_t>* temporaries_;  // one for each of the sums
  std::uint32_t mask_;
};

}  // namespace oomrec::live
