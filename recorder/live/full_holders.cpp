#include "recorder/live/full_holders.h"

#include <atomic>

#include "common/system/mutex.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

using session::BriefHolder;
using session::g_session;
using session::Holder;
using session::HolderEntry;

namespace {

constinit system::Mutex g_lock;
constinit session::FreeNumbers g_free;

std::uint64_t figures_of(std::uint32_t number) noexcept {
  return g_session.holders.at(number).figures.load(std::memory_order_acquire);
}
Holder& at(std::uint64_t figures) noexcept {
  return g_session.full_holders.at(session::full_number(figures));
}

// Flags are never cleared: one sampled block makes the total an estimate.
void add_flags(Holder& holder, std::uint8_t flags) noexcept {
  const std::atomic_ref present(holder.flags);
  if ((present.load(std::memory_order_relaxed) & flags) != flags) [[unlikely]]
    present.fetch_or(flags, std::memory_order_relaxed);
}

}  // namespace

Holder* find_full(std::uint32_t number) noexcept {
  const std::uint64_t figures = figures_of(number);
  return session::is_full(figures) ? &at(figures) : nullptr;
}

Holder& full_holder(std::uint32_t number) noexcept { return at(figures_of(number)); }

// Readers do not see the new entry before the word leads to it: killed in between, the holder is
// still brief.
Holder* make_full(InHook hook, std::uint32_t number, std::uint8_t flags) noexcept {
  const auto find = [&]() noexcept {
    Holder* const found = find_full(number);
    if (found != nullptr) add_flags(*found, flags);
    return found;
  };
  if (Holder* const found = find()) return found;
  const system::MutexGuard guard(g_lock);
  if (!guard) return nullptr;
  if (Holder* const found = find()) return found;  // meanwhile
  HolderEntry& entry = g_session.holders.at(number);
  std::uint64_t figures = entry.figures.load(std::memory_order_relaxed);
  std::uint32_t full = 0;
  const auto describe = [&](Holder& holder) noexcept {
    holder.node = entry.node;
    holder.space = entry.space;
    holder.api = entry.api;
    std::atomic_ref(holder.flags).store(flags, std::memory_order_relaxed);
  };
  if ((full = g_free.take(1)) != 0) {
    // A reader that sees what follows also sees that its last holder is forgotten.
    std::atomic_thread_fence(std::memory_order_release);
    describe(g_session.full_holders.at(full));
  } else if (!g_session.full_holders.append(hook, full, describe)) {
    return nullptr;
  }
  Holder& holder = g_session.full_holders.at(full);
  do {
    BriefHolder::unpacked(figures).expand(holder);
  } while (!entry.figures.compare_exchange_weak(figures, session::kFullHolder | full,
                                                std::memory_order_acq_rel));
  return &holder;
}

std::int64_t live_bytes_of(std::uint32_t number) noexcept {
  const std::uint64_t figures = figures_of(number);
  if (session::is_full(figures))
    return static_cast<std::int64_t>(at(figures).live_bytes.load(std::memory_order_relaxed));
  const BriefHolder brief = BriefHolder::unpacked(figures);
  return static_cast<std::int64_t>(brief.bytes * brief.live());
}

void free_full_holder(InHook hook, Holder& holder, std::uint32_t full) noexcept {
  const system::MutexGuard guard(g_lock);
  if (!guard) return;
  holder.node = 0;
  g_free.give_back(hook, full);
}

void reset_full_holders(InHook hook) noexcept {
  g_lock.unlock();  // its owner may not exist in the child
  g_free.reset(hook);
}

}  // namespace oomrec::live
