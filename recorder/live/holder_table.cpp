#include "recorder/live/holder_table.h"

#include "common/system/atomics.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

using session::BriefHolder;
using session::g_session;
using session::Holder;
using session::HolderChange;
using session::HolderEntry;

namespace {

std::uint32_t peak_epoch_of(std::uint8_t space) noexcept {
  return session::peak_epoch_of(g_session.header(), space);
}

std::uint32_t heap_epoch() noexcept {
  const auto& totals = g_session.header().spaces[static_cast<std::size_t>(Space::heap)];
  return totals.peak_epoch.load(std::memory_order_acquire);
}

}  // namespace

std::uint32_t HolderTable::find_or_add_brief(InHook hook, std::uint32_t node, Space space,
                                             Api api) noexcept {
  const bool by_node = space == Space::heap && NodeMap::holds(node);
  const std::uint64_t hash = mix(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(space));
  const auto matches = [&](std::uint32_t number) noexcept {
    const HolderEntry& entry = g_session.holders.at(number);
    return entry.node == node && entry.space == static_cast<std::uint8_t>(space);
  };
  const auto find = [&]() noexcept {
    const std::uint32_t found = by_node ? of_heap_.find(node) : NodeMap::kElsewhere;
    return found != NodeMap::kElsewhere ? found : index_.find(hash, matches);
  };
  if (const std::uint32_t found = find()) return found;

  const system::MutexGuard guard(lock_);
  if (!guard) return 0;
  if (const std::uint32_t found = find()) return found;
  std::uint32_t number = 0;
  const bool added = g_session.holders.append(hook, number, [&](HolderEntry& entry) noexcept {
    entry.node = node;
    entry.space = static_cast<std::uint8_t>(space);
    entry.api = static_cast<std::uint16_t>(api);
    // Valid for the last peak step: it had no blocks then.
    BriefHolder brief;
    brief.peak_epoch = peak_epoch_of(entry.space);
    entry.figures.store(brief.packed(), std::memory_order_relaxed);
  });
  if (!added || (by_node && !of_heap_.prepare(hook, node, number))) return 0;
  if (by_node && of_heap_.insert(node, number)) return number;
  if (!index_.insert(hook, hash, number)) return 0;
  if (by_node) of_heap_.insert_elsewhere(node);
  return number;
}

std::uint32_t HolderTable::find_or_add(InHook hook, std::uint32_t node, Space space, Api api,
                                       std::uint8_t flags) noexcept {
  const std::uint32_t number = find_or_add_brief(hook, node, space, api);
  return number != 0 && make_full(hook, number, flags) != nullptr ? number : 0;
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
  add_temporary(full_holder(number), count);
}

void HolderTable::add_temporary(Holder& holder, std::uint64_t count) noexcept {
  constexpr std::uint32_t kMost = ~std::uint32_t{0};
  std::atomic<std::uint32_t>& word = holder.temporary_count;
  if (kMost - word.load(std::memory_order_relaxed) < count) [[unlikely]]
    word.store(kMost, std::memory_order_relaxed);
  else
    add_shared(word, static_cast<std::uint32_t>(count));
}

bool HolderTable::settle(InHook hook, session::HolderSum& sum,
                         std::atomic<std::uint32_t>& temporary, std::uint32_t epoch) noexcept {
  const std::uint32_t number = sum.holder.load(std::memory_order_relaxed);
  const std::uint64_t counts = sum.counts.load(std::memory_order_relaxed);
  if (number == 0 || counts == 0) return true;
  const HolderChange change{sum.allocated_bytes.load(std::memory_order_relaxed),
                            sum.freed_bytes.load(std::memory_order_relaxed), counts >> 32,
                            counts & 0xffff'ffff, temporary.load(std::memory_order_relaxed)};
  if (!add(hook, number, change, epoch)) return false;
  sum.counts.store(0, std::memory_order_relaxed);  // first: from now on readers ignore the sum
  sum.allocated_bytes.store(0, std::memory_order_relaxed);
  sum.freed_bytes.store(0, std::memory_order_relaxed);
  if (change.temporary != 0) temporary.store(0, std::memory_order_relaxed);
  return true;
}

bool HolderTable::add(InHook hook, std::uint32_t number, const HolderChange& change) noexcept {
  return add(hook, number, change, heap_epoch());
}

bool HolderTable::add(InHook hook, std::uint32_t number, const HolderChange& change,
                      std::uint32_t epoch) noexcept {
  if (settle_brief(hook, number, change, epoch)) return true;
  Holder* const holder = make_full(hook, number);
  if (holder == nullptr) return false;
  settle_full(*holder, number, change, epoch);
  return true;
}

// False: it is full, or must become so.
bool HolderTable::settle_brief(InHook hook, std::uint32_t number, const HolderChange& change,
                               std::uint32_t epoch) noexcept {
  const std::uint32_t now = heap_epoch();
  std::atomic<std::uint64_t>& word = g_session.holders.at(number).figures;
  std::uint64_t figures = word.load(std::memory_order_acquire);
  BriefHolder brief;
  do {
    if (session::is_full(figures)) return false;
    brief = BriefHolder::unpacked(figures);
    if (!brief.add(change, epoch, now)) return false;
  } while (!word.compare_exchange_weak(figures, brief.packed(), std::memory_order_acq_rel));
  if (static_cast<std::int64_t>(change.live_bytes()) > 0)
    candidates_.note_brief(hook, number, static_cast<std::int64_t>(brief.bytes * brief.live()));
  return true;
}

void HolderTable::settle_full(Holder& holder, std::uint32_t number, const HolderChange& change,
                              std::uint32_t epoch) noexcept {
  const auto apply = [&]() noexcept {
    add_shared(holder.live_bytes, change.live_bytes());
    add_shared(holder.live_count, change.live_count());
    add_shared(holder.total_bytes, change.allocated_bytes);
    add_shared(holder.total_count, change.allocated);
    if (change.temporary != 0) add_temporary(holder, change.temporary);
    if (static_cast<std::int64_t>(change.live_bytes()) > 0) candidates_.note(holder, number);
  };
  const std::uint32_t now = heap_epoch();
  if (epoch == now) {
    prepare_change(holder);
    return apply();
  }
  const system::MutexGuard guard(
      peak_lock_of(holder));  // protects against a concurrent save_peak()
  if (guard && holder.peak_epoch.load(std::memory_order_relaxed) == now) {
    add_shared(holder.peak_bytes, change.live_bytes());
    add_shared(holder.peak_count, change.live_count());
  }
  apply();
}

void HolderTable::reset(InHook hook) noexcept {
  lock_.unlock();  // its owner may not exist in the child
  for (system::Mutex& lock : peak_locks_) lock.unlock();
  of_heap_.reset(hook);
  index_.reset(hook);
  candidates_.reset(hook);
  reset_full_holders(hook);
}

void HolderTable::prepare_change(Holder& holder) noexcept {
  if (holder.peak_epoch.load(std::memory_order_acquire) != peak_epoch_of(holder.space)) [[unlikely]]
    save_peak(holder);
}

void HolderTable::save_peak(Holder& holder) noexcept {
  const system::MutexGuard guard(peak_lock_of(holder));
  const std::uint32_t epoch = peak_epoch_of(holder.space);
  if (!guard || holder.peak_epoch.load(std::memory_order_relaxed) == epoch) return;
  holder.peak_bytes.store(holder.live_bytes.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  holder.peak_count.store(holder.live_count.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
  holder.peak_epoch.store(epoch, std::memory_order_release);
}

}  // namespace oomrec::live
