#include "recorder/live/candidates.h"

#include <algorithm>

#include "recorder/live/full_holders.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

using session::g_session;
using session::Holder;

namespace {

std::int64_t live_bytes_of(const Holder& holder) noexcept {
  // A racing free can be seen before its allocation.
  const auto live = static_cast<std::int64_t>(holder.live_bytes.load(std::memory_order_relaxed));
  return live < 0 ? 0 : live;
}

bool larger(const LargeHolder& a, const LargeHolder& b) noexcept {
  return a.live_bytes != b.live_bytes ? a.live_bytes > b.live_bytes : a.holder < b.holder;
}

}  // namespace

void Candidates::add(Holder& holder, std::uint32_t number, std::int64_t live) noexcept {
  if (is_address_space(static_cast<Space>(holder.space))) return;
  const system::TryGuard guard(lock_);
  if (guard && !is_candidate(holder)) insert(holder, number, live);
}

void Candidates::add_brief(InHook hook, std::uint32_t number, std::int64_t live) noexcept {
  if (Holder* const holder = make_full(hook, number)) add(*holder, number, live);
}

// Under lock_.
void Candidates::insert(Holder& holder, std::uint32_t number, std::int64_t live) noexcept {
  if (count_ == kMost) evict();
  candidates_[count_++] = {live, number};
  std::atomic_ref(holder.flags).fetch_or(session::kHolderCandidate, std::memory_order_relaxed);
}

// Under lock_.
void Candidates::update_sizes() noexcept {
  for (LargeHolder& row : std::span{candidates_, count_})
    row.live_bytes = live_bytes_of(full_holder(row.holder));
}

// Under lock_, as the next two. The first one without live blocks, after those that have some.
LargeHolder* Candidates::partition_empty() noexcept {
  update_sizes();
  const auto holds = [](const LargeHolder& row) noexcept { return row.live_bytes > 0; };
  return std::partition(candidates_, candidates_ + count_, holds);
}

void Candidates::drop_from(LargeHolder* kept) noexcept {
  constexpr auto kOthers = static_cast<std::uint8_t>(~session::kHolderCandidate);
  for (const LargeHolder& row : std::span{kept, candidates_ + count_})
    std::atomic_ref(full_holder(row.holder).flags).fetch_and(kOthers, std::memory_order_relaxed);
  count_ = static_cast<std::uint32_t>(kept - candidates_);
}

// Evicts holders without live blocks first: with thousands of small, short-lived holders, these are
// nearly all.
void Candidates::evict() noexcept {
  LargeHolder* kept = partition_empty();
  if (kept > candidates_ + kKept) {
    std::nth_element(candidates_, candidates_ + kKept - 1, kept, larger);
    kept = candidates_ + kKept;
    threshold_.store(kept[-1].live_bytes, std::memory_order_relaxed);
  }
  drop_from(kept);
}

void Candidates::drop_empty() noexcept {
  const system::TryGuard guard(lock_);
  if (guard) drop_from(partition_empty());
}

void Candidates::scan_next(InHook hook) noexcept {
  const system::TryGuard guard(lock_);
  if (!guard) return;
  const std::uint32_t holders = g_session.holders.size();
  for (std::uint32_t i = 0; i < std::min(kScanned, holders); ++i) {
    if (++last_scanned_ >= holders) last_scanned_ = 1;
    if (last_scanned_ >= holders) return;  // there is none
    const std::int64_t live = live_bytes_of(last_scanned_);
    if (live <= threshold_.load(std::memory_order_relaxed) ||
        is_address_space(static_cast<Space>(g_session.holders.at(last_scanned_).space)))
      continue;
    Holder* const holder = make_full(hook, last_scanned_);
    if (holder != nullptr && !is_candidate(*holder)) insert(*holder, last_scanned_, live);
  }
}

bool Candidates::largest(InHook, std::span<LargeHolder>& out) noexcept {
  const system::TryGuard guard(lock_);
  if (!guard) return false;
  update_sizes();
  std::sort(candidates_, candidates_ + count_, larger);
  std::uint32_t found = 0;
  while (found < std::min<std::size_t>(count_, out.size()) && candidates_[found].live_bytes > 0) {
    out[found] = candidates_[found];
    ++found;
  }
  // A holder larger than the smallest of these must become a candidate, even if all have shrunk.
  const std::int64_t smallest = found < out.size() ? 0 : out.back().live_bytes;
  if (smallest < threshold_.load(std::memory_order_relaxed))
    threshold_.store(smallest, std::memory_order_relaxed);
  out = out.first(found);
  return true;
}

void Candidates::reset(InHook) noexcept {
  lock_.unlock();  // its owner may not exist in the child
  threshold_.store(0, std::memory_order_relaxed);
  count_ = last_scanned_ = 0;
}

}  // namespace oomrec::live
