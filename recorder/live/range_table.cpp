#include "recorder/live/range_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/machine/page.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

using session::g_session;
using session::LiveRange;

// --- Called by the recorder ---------------------------------------------------------------------

namespace {

// Without an overflow, and rounded down.
std::uint64_t part_of(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0
             ? 0
             : static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                                          static_cast<double>(whole));
}

// Smaller pieces are not looked at.
bool is_unwritten_file(const Range& range, std::uint64_t start, std::uint64_t end) noexcept {
  return range.kind == RangeKind::private_file && !range.is_usable &&
         end - start >= session::kLookBytes;
}

}  // namespace

RangeChange RangeTable::map(InHook hook, std::uint64_t start, std::uint64_t bytes, RangeKind kind,
                            bool anonymous, std::uint32_t holder, std::uint32_t birth_s,
                            Growth growth) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  if (!guard) return change;
  set(hook,
      {machine::page_down(start), machine::page_up(start + bytes), holder, 0, kind, anonymous},
      birth_s, growth, change);
  return change;
}

RangeChange RangeTable::reserve(InHook hook, std::uint64_t start, std::uint64_t bytes,
                                RangeKind kind, std::uint32_t holder,
                                std::uint32_t birth_s) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  if (!guard) return change;
  Range range{machine::page_down(start),     machine::page_up(start + bytes), holder, 0, kind,
              kind == RangeKind::reservation};
  range.is_usable = true;
  set(hook, range, birth_s, Growth::separate, change);
  return change;
}

void RangeTable::set_sparse(InHook, std::uint64_t start, std::uint64_t bytes) noexcept {
  const system::MutexGuard guard(lock_);
  const std::uint32_t at = first_below(start + bytes);
  if (guard && at < count_ && ranges_[at].start <= start) ranges_[at].is_sparse = true;
}

Sparse RangeTable::sparseness_of(InHook, std::uint64_t start, std::uint64_t bytes) noexcept {
  const system::MutexGuard guard(lock_);
  const std::uint32_t at = first_below(start + bytes);
  if (!guard || at >= count_) return Sparse::no;
  const Range& range = ranges_[at];
  if (range.start > start || range.end < start + bytes) return Sparse::no;
  if (range.is_usable) return Sparse::usable;
  return range.is_sparse && range.kind == RangeKind::reservation ? Sparse::reserved : Sparse::no;
}

RangeChange RangeTable::set_touched(InHook hook, std::uint64_t start, std::uint64_t end,
                                    std::uint64_t touched_bytes, const Credit& credit) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  const std::uint32_t at = first_below(end);
  if (!guard || at >= count_ || ranges_[at].start > start || ranges_[at].end < end) return change;
  Range& range = ranges_[at];
  const Growers::Part running{credit.running, 1};
  // One that is filled when it is first looked at was made for what fills it: it is no arena.
  const bool is_filled_at_once =
      !range.was_looked_at && touched_bytes >= (range.end - range.start) / 16 * 15;
  std::span<const Growers::Part> growers;
  if (range.kind == RangeKind::reservation && !is_filled_at_once) {
    if (!credit.sampled.empty())
      growers = credit.sampled;
    else if (range.was_looked_at)
      growers = {&running, 1};
  }
  if (range.is_usable) recount(hook, range, touched_bytes, change, growers, credit.now_s);
  range.was_looked_at = true;
  return change;
}

RangeChange RangeTable::set_all_touched(InHook hook) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  for (std::uint32_t at = 0; guard && at < count_; ++at)
    if (ranges_[at].is_usable)
      recount(hook, ranges_[at], ranges_[at].end - ranges_[at].start, change);
  return change;
}

RangeChange RangeTable::unmap(InHook hook, std::uint64_t start, std::uint64_t bytes) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  if (guard) carve(hook, machine::page_down(start), machine::page_up(start + bytes), change);
  return change;
}

RangeChange RangeTable::remap(InHook hook, std::uint64_t old_start, std::uint64_t old_bytes,
                              std::uint64_t new_start, std::uint64_t new_bytes,
                              std::uint32_t holder, std::uint32_t birth_s) noexcept {
  RangeChange change;
  const system::MutexGuard guard(lock_);
  if (!guard) return change;
  const std::uint32_t at = first_below(machine::page_down(old_start) + 1);
  const bool found = at < count_ && ranges_[at].end > machine::page_down(old_start);
  const Range old = found ? ranges_[at] : Range{};
  if (old_bytes != 0)
    carve(hook, machine::page_down(old_start), machine::page_up(old_start + old_bytes), change);
  const std::uint64_t start = machine::page_down(new_start),
                      end = machine::page_up(new_start + new_bytes);
  if (found) {
    Range range{start, end, old.is_usable ? old.holder : holder, 0, old.kind, old.anonymous};
    range.is_usable = old.is_usable;
    set(hook, range, birth_s, Growth::separate, change);
  } else {
    carve(hook, start, end, change);
  }
  return change;
}

RangeChange RangeTable::protect(InHook hook, std::uint64_t start, std::uint64_t bytes,
                                int protection, std::uint32_t holder,
                                std::uint32_t birth_s) noexcept {
  RangeChange change;
  const bool writable = (protection & PROT_WRITE) != 0;
  const RangeKind wanted = writable ? RangeKind::counted : RangeKind::reservation;
  if (!writable && protection != PROT_NONE) return change;
  const system::MutexGuard guard(lock_);
  if (!guard) return change;

  const std::uint64_t low = machine::page_down(start);
  for (std::uint64_t top = machine::page_up(start + bytes);
       top > low;) {  // from the top piece to the lowest
    const std::uint32_t at = first_below(top);
    if (at >= count_ || ranges_[at].end <= low) break;
    const Range range = ranges_[at];
    const std::uint64_t end = std::min(range.end, top);
    top = std::max(range.start, low);
    const bool changes =
        range.anonymous && range.kind != wanted && (writable || range.kind == RangeKind::counted);
    if (changes) set(hook, {top, end, holder, 0, wanted, true}, birth_s, Growth::separate, change);
    if (writable && is_unwritten_file(range, top, end)) {
      Range written{top, end, holder, 0, RangeKind::private_file, false};
      written.is_usable = true;
      set(hook, written, birth_s, Growth::separate, change);
    }
  }
  return change;
}

bool RangeTable::has_unwritten_file(InHook, std::uint64_t start, std::uint64_t bytes) noexcept {
  const system::MutexGuard guard(lock_);
  const std::uint64_t low = machine::page_down(start), high = machine::page_up(start + bytes);
  for (std::uint32_t at = first_below(high); guard && at < count_ && ranges_[at].end > low; ++at)
    if (is_unwritten_file(ranges_[at], std::max(ranges_[at].start, low),
                          std::min(ranges_[at].end, high)))
      return true;
  return false;
}

std::uint64_t RangeTable::counted_bytes(InHook, std::uint64_t start, std::uint64_t bytes) noexcept {
  std::uint64_t sum = 0;
  const system::MutexGuard guard(lock_);
  const std::uint64_t low = machine::page_down(start), high = machine::page_up(start + bytes);
  for (std::uint32_t at = first_below(high); guard && at < count_ && ranges_[at].end > low; ++at) {
    const Range& range = ranges_[at];
    if (range.kind == RangeKind::counted)
      sum += std::min(range.end, high) - std::max(range.start, low);
  }
  return sum;
}

std::uint64_t RangeTable::promotable_bytes(InHook, std::uint64_t start,
                                           std::uint64_t bytes) noexcept {
  std::uint64_t sum = 0;
  const system::MutexGuard guard(lock_);
  const std::uint64_t low = machine::page_down(start), high = machine::page_up(start + bytes);
  for (std::uint32_t at = first_below(high); guard && at < count_ && ranges_[at].end > low; ++at) {
    const Range& range = ranges_[at];
    if (range.anonymous && range.kind != RangeKind::counted) {
      sum += std::min(range.end, high) - std::max(range.start, low);
    }
  }
  return sum;
}

RangeChange RangeTable::detach(InHook, std::uint32_t pool) noexcept {
  if (lock_.held())
    count_ = 0;  // its owner, in the middle of a change, does not exist in the child
  lock_.unlock();
  growers_.clear();
  slots_.reset();
  for (std::uint32_t at = 0; at < count_; ++at) {
    ranges_[at].slot = 0;
    ranges_[at].touched_bytes = 0;  // until somebody looks in the child
    ranges_[at].of_pool = pool != 0 && ranges_[at].holder == pool;
    ranges_[at].holder = 0;
  }
  return sum();
}

void RangeTable::clear(InHook) noexcept {
  lock_.unlock();
  growers_.clear();
  count_ = 0;
  usable_bytes_.store(0, std::memory_order_relaxed);
  slots_.reset();
}

RangeChange RangeTable::adopt(InHook hook, std::uint32_t holder, std::uint32_t pool) noexcept {
  const system::MutexGuard guard(lock_);
  if (!guard) return {};
  for (std::uint32_t at = 0; at < count_; ++at) {
    Range& range = ranges_[at];
    if (range.kind == RangeKind::counted || range.is_usable)
      range.holder = range.of_pool && pool != 0 ? pool : holder;
    if (range.holder != 0)
      holders_.grow(hook, range.holder,
                    range.kind == RangeKind::counted ? range.end - range.start : 0, 1);
    publish(hook, range, 0);
  }
  return sum();
}

RangeChange RangeTable::sum() const noexcept {
  RangeChange all;
  for (std::uint32_t at = 0; at < count_; ++at) {
    const std::uint64_t bytes = ranges_[at].end - ranges_[at].start;
    if (ranges_[at].kind == RangeKind::counted) {
      all.added_bytes += bytes;
      all.added_count += 1;
    } else {
      all.added_count += ranges_[at].is_usable ? 1 : 0;
      if (ranges_[at].kind == RangeKind::reservation)
        all.reserved_bytes += static_cast<std::int64_t>(bytes);
    }
  }
  return all;
}

// --- Cutting and setting ------------------------------------------------------------------------

// Removes [start, end) from every range, keeping the parts on either side.
void RangeTable::carve(InHook hook, std::uint64_t start, std::uint64_t end,
                       RangeChange& change) noexcept {
  if (end <= start) return;
  for (std::uint32_t at = first_below(end); at < count_ && ranges_[at].end > start;) {
    Range& range = ranges_[at];
    const bool low_stays = range.start<start, high_stays = range.end> end;
    const std::uint64_t bytes = std::min(range.end, end) - std::max(range.start, start);
    // Until the next look: which part was touched is not known.
    const std::uint64_t left = range.end - range.start - bytes;
    recount(hook, range, part_of(range.touched_bytes, left, left + bytes), change);
    const Range whole = range;
    if (low_stays && high_stays) {
      Range high = whole;
      high.start = end;
      high.slot = 0;
      high.touched_bytes = part_of(whole.touched_bytes, high.end - high.start, left);
      range.touched_bytes -= high.touched_bytes;
      range.end = start;
      republish(range);
      publish(
          hook, high,
          g_session.active() && whole.slot != 0 ? g_session.live_ranges.at(whole.slot).birth_s : 0);
      if (insert_at(hook, at, high)) {
        uncount(hook, whole, bytes, -1, change);
      } else {  // no room for the second piece: drop it, as if it were unmapped
        unpublish(high);
        recount(hook, high, 0, change);
        uncount(hook, whole, bytes + (whole.end - end), 0, change);
        ++change.dropped;
      }
      return;
    }
    if (low_stays) {
      range.end = start;
      republish(range);
      ++at;
    } else if (high_stays) {
      range.start = end;
      republish(range);
      ++at;
    } else {
      erase_at(hook, at);
    }
    uncount(hook, whole, bytes, low_stays || high_stays ? 0 : 1, change);
  }
}

void RangeTable::set(InHook hook, Range range, std::uint32_t birth_s, Growth growth,
                     RangeChange& change) noexcept {
  if (range.end <= range.start) return;
  carve(hook, range.start, range.end, change);
  const std::uint64_t bytes = range.end - range.start;
  const bool counts = range.kind == RangeKind::counted;
  if (!counts && !range.is_usable) range.holder = 0;

  const std::uint32_t at = first_below(range.end);
  const bool longer = growth == Growth::extend && at < count_ && ranges_[at].end == range.start &&
                      ranges_[at].kind == range.kind && ranges_[at].holder == range.holder &&
                      ranges_[at].anonymous == range.anonymous;
  if (longer) {
    ranges_[at].end = range.end;
    republish(ranges_[at]);
  } else {
    publish(hook, range, birth_s);
    if (!insert_at(hook, at, range)) {
      unpublish(range);
      ++change.dropped;
      return;
    }
  }
  if (range.is_usable) usable_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (counts || range.is_usable) {
    const std::uint64_t counted = counts ? bytes : 0;
    change.added_bytes += counted;
    change.added_count += longer ? 0 : 1;
    if (range.holder != 0) holders_.grow(hook, range.holder, counted, longer ? 0 : 1);
  }
  if (range.kind == RangeKind::reservation) {
    change.reserved_bytes += static_cast<std::int64_t>(bytes);
  }
}

// A usable range is a block of its holder from the start, and has what of it is touched.
void RangeTable::recount(InHook hook, Range& range, std::uint64_t touched_bytes,
                         RangeChange& change, std::span<const Growers::Part> growers,
                         std::uint32_t now_s) noexcept {
  const std::uint64_t before = std::exchange(range.touched_bytes, touched_bytes);
  const std::uint64_t more = touched_bytes - std::min(before, touched_bytes);
  const std::uint64_t less = before - std::min(before, touched_bytes);
  change.added_bytes += more;
  change.removed_bytes += less;
  Growers::Change shares;
  if (more != 0)
    shares = growers_.grow(hook, holders_, range.holder, growers, more, now_s);
  else if (less != 0)
    shares = growers_.shrink(hook, holders_, range.holder, less);
  change.added_count += shares.added_count;
  change.removed_count += static_cast<std::int64_t>(shares.removed_count);
}

// Subtracts `bytes` of `range`, and `ranges` ranges.
void RangeTable::uncount(InHook hook, const Range& range, std::uint64_t bytes, std::int64_t ranges,
                         RangeChange& change) noexcept {
  if (range.kind == RangeKind::reservation)
    change.reserved_bytes -= static_cast<std::int64_t>(bytes);
  if (range.is_usable) usable_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (range.kind != RangeKind::counted && !range.is_usable) return;
  const std::uint64_t counted = range.kind == RangeKind::counted ? bytes : 0;
  change.removed_bytes += counted;
  change.removed_count += ranges;
  if (range.holder != 0)
    holders_.shrink(hook, range.holder, counted, static_cast<std::uint64_t>(ranges));
}

// --- The array ----------------------------------------------------------------------------------

// The highest range that starts below `address`; those after it are lower.
std::uint32_t RangeTable::first_below(std::uint64_t address) const noexcept {
  std::uint32_t low = 0, high = count_;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (ranges_[middle].start >= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool RangeTable::insert_at(InHook hook, std::uint32_t at, const Range& range) noexcept {
  if (count_ == capacity_ && !reserve_one_more(hook)) return false;
  std::memmove(ranges_ + at + 1, ranges_ + at, (count_ - at) * sizeof(Range));
  ranges_[at] = range;
  ++count_;
  return true;
}

void RangeTable::erase_at(InHook, std::uint32_t at) noexcept {
  unpublish(ranges_[at]);
  --count_;
  std::memmove(ranges_ + at, ranges_ + at + 1, (count_ - at) * sizeof(Range));
}

bool RangeTable::reserve_one_more(InHook) noexcept {
  const std::uint32_t capacity = capacity_ == 0 ? kFirstRanges : capacity_ * 2;
  if (capacity > kMaxRanges) return false;
  auto* const larger = static_cast<Range*>(system::map_private(capacity * sizeof(Range)));
  if (larger == nullptr) return false;
  if (count_ != 0) std::memcpy(larger, ranges_, count_ * sizeof(Range));
  if (ranges_ != nullptr) system::unmap(ranges_, capacity_ * sizeof(Range));
  ranges_ = larger;
  capacity_ = capacity;
  return true;
}

// --- The session's copy -------------------------------------------------------------------------

void RangeTable::publish(InHook hook, Range& range, std::uint32_t birth_s) noexcept {
  range.slot = 0;
  if (!g_session.active()) return;
  if (slots_.take(hook, g_session.live_ranges, range.slot)) write(range, birth_s);
}

void RangeTable::write(const Range& range, std::uint32_t birth_s) noexcept {
  LiveRange& entry = g_session.live_ranges.at(range.slot);
  slots_.write(entry, range.start, [&]() noexcept {
    entry.bytes = range.end - range.start;
    entry.holder = range.holder;
    entry.kind = static_cast<std::uint32_t>(range.kind);
    entry.birth_s = birth_s;
  });
}

void RangeTable::republish(const Range& range) noexcept {
  if (range.slot != 0) write(range, g_session.live_ranges.at(range.slot).birth_s);
}

void RangeTable::unpublish(Range& range) noexcept {
  if (range.slot != 0) slots_.give_back(g_session.live_ranges, range.slot);
  range.slot = 0;
}

}  // namespace oomrec::live
