// What one thread does to holders of the heap, summed up in its lane before it tells them.
//
// A holder is shared by all threads with its stack: told of each event, its words would travel
// between the processors (481 ns an event with two threads, against 23). The sums stand in the
// session, where a reader adds them to the holders' figures (View::for_each_sum); holders are told
// when a place is needed for another node, when a sum is large, at each peak step, and ten times a
// second. Only the lane's owner may call.
#pragma once

#include <cstdint>

#include "common/system/atomics.h"
#include "common/system/hook_scope.h"
#include "recorder/live/holder_table.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

class HolderSums {
 public:
  // The lane's sums, if it has any; else holders are told at once.
  void use(session::Lane& lane, session::HolderSum* sums,
           std::atomic<std::uint32_t>* temporaries) noexcept {
    lane_ = &lane;
    sums_ = sums;
    temporaries_ = temporaries;
    mask_ = sums == nullptr ? 0 : lane.sums - 1;
  }

  // One more block of the heap, or one less, of the stack `node`; `temporary`: the thread has
  // allocated nothing since that block. False: there is no room for its holder.
  bool grow(InHook hook, HolderTable& holders, std::uint32_t node, Api api,
            std::uint64_t bytes) noexcept {
    session::HolderSum* const sum = sum_of(hook, holders, node, api);
    if (sum == nullptr) [[unlikely]]
      return grow_at_once(hook, holders, node, api, bytes);
    add_own(sum->allocated_bytes, bytes);
    add_own(sum->counts, kOneAllocated);
    if (sum->allocated_bytes.load(std::memory_order_relaxed) -
            sum->freed_bytes.load(std::memory_order_relaxed) + kLargeSum >=
        2 * kLargeSum) [[unlikely]] {
      settle(hook, holders, *sum);
    }
    return true;
  }
  void shrink(InHook hook, HolderTable& holders, std::uint32_t node, std::uint64_t bytes,
              bool temporary) noexcept {
    session::HolderSum* const sum = sum_of(hook, holders, node, Api::none);
    if (sum == nullptr) [[unlikely]]
      return shrink_at_once(hook, holders, node, bytes, temporary);
    add_own(sum->freed_bytes, bytes);
    add_own(sum->counts, kOneFreed);
    if (temporary) add_own(temporary_of(*sum), std::uint32_t{1});
  }

  // Where a thread has no lane.
  static bool grow_at_once(InHook, HolderTable&, std::uint32_t node, Api,
                           std::uint64_t bytes) noexcept;
  static void shrink_at_once(InHook, HolderTable&, std::uint32_t node, std::uint64_t bytes,
                             bool temporary) noexcept;

  // Tells the holders everything.
  void settle(InHook, HolderTable&) noexcept;

 private:
  static constexpr std::uint64_t kOneAllocated = std::uint64_t{1} << 32, kOneFreed = 1;
  static constexpr std::uint64_t kLargeSum = 64 * 1024;

  static std::uint32_t peak_epoch() noexcept {
    return session::g_session.header()
        .spaces[static_cast<std::size_t>(Space::heap)]
        .peak_epoch.load(std::memory_order_relaxed);
  }
  std::uint32_t epoch() const noexcept { return lane_->sums_epoch.load(std::memory_order_relaxed); }

  std::atomic<std::uint32_t>& temporary_of(const session::HolderSum& sum) const noexcept {
    return temporaries_[&sum - sums_];
  }
  void settle(InHook hook, HolderTable& holders, session::HolderSum& sum) noexcept {
    holders.settle(hook, sum, temporary_of(sum), epoch());
  }

  session::HolderSum* sum_of(InHook hook, HolderTable& holders, std::uint32_t node,
                             Api api) noexcept {
    if (sums_ == nullptr) [[unlikely]]
      return nullptr;
    if (epoch() != peak_epoch()) [[unlikely]]
      settle(hook, holders);
    session::HolderSum& sum = sums_[node & mask_];
    if (sum.node.load(std::memory_order_relaxed) == node) [[likely]]
      return &sum;
    return give_to(hook, holders, sum, node, api);
  }
  [[gnu::noinline]] session::HolderSum* give_to(InHook, HolderTable&, session::HolderSum&,
                                                std::uint32_t node, Api) noexcept;

  session::Lane* lane_;
  session::HolderSum* sums_;
  std::atomic<std::uint32_t>* temporaries_;  // one for each of the sums
  std::uint32_t mask_;
};

}  // namespace oomrec::live
