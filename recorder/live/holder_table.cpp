#include "recorder/live/holder_table.h"

#include "common/system/atomics.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

using session::g_session;
using session::Holder;

namespace {

// Flags are never cleared: one sampled block makes the total an estimate.
void add_flags(Holder& holder, std::uint8_t flags) noexcept {
  const std::atomic_ref present(holder.flags);
  if ((present.load(std::memory_order_relaxed) & flags) != flags) [[unlikely]]
    present.fetch_or(flags, std::memory_order_relaxed);
}

std::uint32_t peak_epoch_of(const Holder& holder) noexcept {
  return session::peak_epoch_of(g_session.header(), holder);
}

}  // namespace

std::uint32_t HolderTable::find_or_add(InHook hook, std::uint32_t node, Space space, Api api,
                                       std::uint8_t flags) noexcept {
  const bool by_node = space == Space::heap && NodeMap::holds(node);
  const std::uint64_t hash = mix(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(space));
  const auto matches = [&](std::uint32_t number) noexcept {
    const Holder& holder = g_session.holders.at(number);
    return holder.node == node && holder.space == static_cast<std::uint8_t>(space);
  };
  const auto find = [&]() noexcept {
    const std::uint32_t found = by_node ? of_heap_.find(node) : index_.find(hash, matches);
    if (found != 0) add_flags(g_session.holders.at(found), flags);
    return found;
  };
  if (const std::uint32_t found = find()) return found;

  const system::MutexGuard guard(lock_);
  if (!guard) return 0;
  if (const std::uint32_t found = find()) return found;
  std::uint32_t number = 0;
  const bool added = g_session.holders.append(hook, number, [&](Holder& holder) noexcept {
    holder.node = node;
    holder.space = static_cast<std::uint8_t>(space);
    holder.flags = flags;
    holder.api = static_cast<std::uint16_t>(api);
    // Valid for the last peak step: it had no blocks then.
    holder.peak_epoch.store(peak_epoch_of(holder), std::memory_order_relaxed);
  });
  if (!added) return 0;
  const bool inserted =
      by_node ? of_heap_.insert(hook, node, number) : index_.insert(hook, hash, number);
  return inserted ? number : 0;
}

void HolderTable::grow(InHook, std::uint32_t number, std::uint64_t bytes,
                       std::uint64_t count) noexcept {
  Holder& holder = changing(number);
  add_shared(holder.live_bytes, bytes);
  add_shared(holder.live_count, count);
  add_shared(holder.total_bytes, bytes);
  add_shared(holder.total_count, count);
  candidates_.note(holder, number);
}

void HolderTable::restore(InHook, std::uint32_t number, std::uint64_t bytes,
                          std::uint64_t count) noexcept {
  Holder& holder = changing(number);
  add_shared(holder.live_bytes, bytes);
  add_shared(holder.live_count, count);
  candidates_.note(holder, number);
}

void HolderTable::shrink(InHook, std::uint32_t number, std::uint64_t bytes,
                         std::uint64_t count) noexcept {
  Holder& holder = changing(number);
  add_shared(holder.live_bytes, -bytes);
  add_shared(holder.live_count, -count);
}

void HolderTable::shrink_at_most(InHook, std::uint32_t number, std::uint64_t bytes,
                                 std::uint64_t count) noexcept {
  Holder& holder = changing(number);
  const auto lower = [](std::atomic<std::uint64_t>& word, std::uint64_t by) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (
        !word.compare_exchange_weak(seen, seen < by ? 0 : seen - by, std::memory_order_relaxed)) {
    }
  };
  lower(holder.live_bytes, bytes);
  lower(holder.live_count, count);
}

void HolderTable::add_temporary(InHook, std::uint32_t number, std::uint32_t count) noexcept {
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  std::atomic<std::uint32_t>& word = g_session.holders.at(number).temporary_count;
  if (kMost - word.load(std::memory_order_relaxed) < count) [[unlikely]]
    word.store(kMost, std::memory_order_relaxed);
  else
    add_shared(word, count);
}

void HolderTable::settle(InHook hook, session::HolderSum& sum,
                         std::atomic<std::uint32_t>& temporary, std::uint32_t epoch) noexcept {
  const std::uint32_t number = sum.holder.load(std::memory_order_relaxed);
  const std::uint64_t bytes = sum.allocated_bytes.load(std::memory_order_relaxed);
  const std::uint64_t counts = sum.counts.load(std::memory_order_relaxed);
  const std::uint64_t live_bytes = bytes - sum.freed_bytes.load(std::memory_order_relaxed);
  const std::uint64_t live_count = (counts >> 32) - (counts & 0xffff'ffff);
  if (number == 0 || counts == 0) return;
  const auto clear = [&]() noexcept {
    sum.allocated_bytes.store(0, std::memory_order_relaxed);
    sum.freed_bytes.store(0, std::memory_order_relaxed);
    sum.counts.store(0, std::memory_order_relaxed);
    if (const std::uint32_t blocks = temporary.load(std::memory_order_relaxed); blocks != 0) {
      add_temporary(hook, number, blocks);
      temporary.store(0, std::memory_order_relaxed);
    }
  };
  const auto apply = [&](Holder& holder) noexcept {
    add_shared(holder.live_bytes, live_bytes);
    add_shared(holder.live_count, live_count);
    add_shared(holder.total_bytes, bytes);
    add_shared(holder.total_count, counts >> 32);
    if (static_cast<std::int64_t>(live_bytes) > 0) candidates_.note(holder, number);
  };
  const auto& totals = g_session.header().spaces[static_cast<std::size_t>(Space::heap)];
  const std::uint32_t now = totals.peak_epoch.load(std::memory_order_acquire);
  if (epoch == now) {
    apply(changing(number));
    return clear();
  }
  Holder& holder = g_session.holders.at(number);
  const system::MutexGuard guard(
      peak_lock_of(holder));  // protects against a concurrent save_peak()
  if (guard && holder.peak_epoch.load(std::memory_order_relaxed) == now) {
    add_shared(holder.peak_bytes, live_bytes);
    add_shared(holder.peak_count, live_count);
  }
  apply(holder);
  clear();
}

void HolderTable::reset(InHook hook) noexcept {
  lock_.unlock();  // its owner may not exist in the child
  for (system::Mutex& lock : peak_locks_) lock.unlock();
  of_heap_.reset(hook);
  index_.reset(hook);
  candidates_.reset(hook);
}

Holder& HolderTable::changing(std::uint32_t number) noexcept {
  Holder& holder = g_session.holders.at(number);
  if (holder.peak_epoch.load(std::memory_order_acquire) != peak_epoch_of(holder)) [[unlikely]]
    save_peak(holder);
  return holder;
}

void HolderTable::save_peak(Holder& holder) noexcept {
  const system::MutexGuard guard(peak_lock_of(holder));
  const std::uint32_t epoch = peak_epoch_of(holder);
  if (!guard || holder.peak_epoch.load(std::memory_order_relaxed) == epoch) return;
  holder.peak_bytes.store(holder.live_bytes.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  holder.peak_count.store(holder.live_count.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  holder.peak_epoch.store(epoch, std::memory_order_release);
}

}  // namespace oomrec::live
