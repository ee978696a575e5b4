#include "recorder/live/holder_table.h"

#include <cstring>

#include "common/system/atomics.h"
#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
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

std::uint64_t hash_of(std::uint32_t node, Space space) noexcept {
  return session::mix(std::uint64_t{node} << 8 | static_cast<std::uint8_t>(space));
}

auto is_holder(std::uint32_t node, Space space) noexcept {
  return [node, space](std::uint32_t number) noexcept {
    const session::HolderName name = session::load_name(g_session.holders.at(number));
    return name.node == node && name.space == static_cast<std::uint8_t>(space);
  };
}

// The driver's blocks may refer to a holder that has nothing live: as long as a graph is not
// launched, or until a release that the driver refuses is taken back.
bool may_be_referred_to(Space space) noexcept {
  return is_device_space(space) && space != Space::torch;
}

bool is_empty(std::uint32_t number) noexcept {
  const HolderEntry& entry = g_session.holders.at(number);
  if (may_be_referred_to(static_cast<Space>(entry.space))) return false;
  const std::uint32_t step = peak_epoch_of(entry.space);
  const std::uint64_t figures = entry.figures.load(std::memory_order_acquire);
  if (!session::is_full(figures)) {
    const BriefHolder brief = BriefHolder::unpacked(figures);
    return brief.live() == 0 && (brief.peak == 0 || brief.peak_epoch != step);
  }
  Holder& full = full_holder(number);
  return full.live_count == 0 && full.live_bytes == 0 &&
         (std::atomic_ref(full.flags).load(std::memory_order_relaxed) &
          session::kHolderCandidate) == 0 &&
         (full.peak_epoch != step || (full.peak_bytes == 0 && full.peak_count == 0));
}

}  // namespace

HolderTable::Has HolderTable::of_node(std::uint32_t node) const noexcept {
  Has has = Has::none;
  const auto look = [&](Space space) noexcept {
    const std::uint32_t number = find(node, space);
    if (number != 0) has = is_empty(number) ? Has::empty : Has::needed;
    return has != Has::needed;
  };
  if (!look(Space::heap)) return has;
  if ((session::g_node_states.load(node) & session::NodeStates::kHasOthers) == 0) return has;
  has = Has::empty;
  for (std::size_t space = 1; space < kSpaceCount; ++space)
    if (!look(static_cast<Space>(space))) return has;
  return has;
}

bool HolderTable::has_any(std::uint32_t node) const noexcept {
  return find(node, Space::heap) != 0 ||
         (session::g_node_states.load(node) & session::NodeStates::kHasOthers) != 0;
}

bool HolderTable::take_out(InHook hook, std::uint32_t node, Space space,
                           Forgotten& forgotten) noexcept {
  const std::uint32_t number = find(node, space);
  if (number == 0) return false;
  HolderEntry& entry = g_session.holders.at(number);
  const std::uint64_t figures = entry.figures.load(std::memory_order_acquire);
  Holder holder{};
  if (session::is_full(figures)) {
    Holder& full = full_holder(number);
    std::memcpy(static_cast<void*>(&holder), static_cast<const void*>(&full), sizeof holder);
  } else {
    BriefHolder::unpacked(figures).expand(holder);
  }
  forgotten = {space,
               static_cast<Api>(entry.api),
               holder.flags,
               holder.total_bytes,
               holder.total_count,
               holder.temporary_count};

  const system::MutexGuard guard(lock_);
  if (!guard) return false;
  const bool by_node = space == Space::heap && NodeMap::holds(node);
  if (!by_node || of_heap_.erase(node) == NodeMap::kElsewhere)
    index_.erase(hash_of(node, space), is_holder(node, space));
  session::store_name(entry, {});
  // A reader that sees what follows also sees that the name has changed.
  std::atomic_thread_fence(std::memory_order_release);
  entry.figures.store(0, std::memory_order_relaxed);
  if (session::is_full(figures))
    free_full_holder(hook, g_session.full_holders.at(session::full_number(figures)),
                     session::full_number(figures));
  free_.give_back(hook, number);
  return true;
}

void HolderTable::add_totals(InHook hook, std::uint32_t number,
                             const Forgotten& forgotten) noexcept {
  Holder* const holder = make_full(hook, number, forgotten.flags & session::kHolderEstimated);
  if (holder == nullptr) return;
  add_shared(holder->total_bytes, forgotten.total_bytes);
  add_shared(holder->total_count, forgotten.total_count);
  add_temporary(*holder, forgotten.temporary_count);
}

std::uint32_t HolderTable::find(std::uint32_t node, Space space) const noexcept {
  const bool by_node = space == Space::heap && NodeMap::holds(node);
  const std::uint32_t found = by_node ? of_heap_.find(node) : NodeMap::kElsewhere;
  return found != NodeMap::kElsewhere ? found
                                      : index_.find(hash_of(node, space), is_holder(node, space));
}

std::uint32_t HolderTable::find_or_add_brief(InHook hook, std::uint32_t node, Space space,
                                             Api api) noexcept {
  if (const std::uint32_t found = find(node, space)) return found;

  const system::MutexGuard guard(lock_);
  if (!guard) return 0;
  if (const std::uint32_t found = find(node, space)) return found;
  const bool by_node = space == Space::heap && NodeMap::holds(node);
  // Valid for the last peak step: it had no blocks then.
  BriefHolder brief;
  brief.peak_epoch = peak_epoch_of(static_cast<std::uint8_t>(space));
  const auto describe = [&](HolderEntry& entry) noexcept {
    entry.figures.store(brief.packed(), std::memory_order_release);
    session::store_name(
        entry, {node, static_cast<std::uint8_t>(space), 0, static_cast<std::uint16_t>(api)});
  };
  std::uint32_t number = free_.take(1);
  if (number != 0)
    describe(g_session.holders.at(number));
  else if (!g_session.may_add_stacks() || !g_session.holders.append(hook, number, describe))
    return 0;
  const bool has_place = !by_node || of_heap_.prepare(hook, node, number);
  if (by_node && has_place && of_heap_.insert(node, number)) return number;
  if (!has_place || !index_.insert(hook, hash_of(node, space), number)) {
    session::store_name(g_session.holders.at(number), {});
    free_.give_back(hook, number);
    return 0;
  }
  if (by_node)
    of_heap_.insert_elsewhere(node);
  else
    session::g_node_states.set(node, session::NodeStates::kHasOthers);
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
  candidates_.on_growth(holder, number);
}

void HolderTable::restore(InHook, std::uint32_t number, std::uint64_t bytes,
                          std::uint64_t count) noexcept {
  Holder& holder = changing(number);
  add_shared(holder.live_bytes, bytes);
  add_shared(holder.live_count, count);
  candidates_.on_growth(holder, number);
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

bool HolderTable::flush(InHook hook, session::HolderSum& sum, std::atomic<std::uint32_t>& temporary,
                        std::uint32_t epoch) noexcept {
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
  if (flush_brief(hook, number, change, epoch)) return true;
  Holder* const holder = make_full(hook, number);
  if (holder == nullptr) return false;
  flush_full(*holder, number, change, epoch);
  return true;
}

// False: it is full, or must become so.
bool HolderTable::flush_brief(InHook hook, std::uint32_t number, const HolderChange& change,
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
    candidates_.on_brief_growth(hook, number,
                                static_cast<std::int64_t>(brief.bytes * brief.live()));
  return true;
}

void HolderTable::flush_full(Holder& holder, std::uint32_t number, const HolderChange& change,
                             std::uint32_t epoch) noexcept {
  const auto apply = [&]() noexcept {
    add_shared(holder.total_bytes, change.allocated_bytes);
    add_shared(holder.total_count, change.allocated);
    if (change.temporary != 0) add_temporary(holder, change.temporary);
    // Last: without live memory, it may be another stack's.
    add_shared(holder.live_bytes, change.live_bytes());
    add_shared(holder.live_count, change.live_count());
    if (static_cast<std::int64_t>(change.live_bytes()) > 0) candidates_.on_growth(holder, number);
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
  free_.reset(hook);
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
