// Mappings: which address ranges the program has mapped, and which of them count.
//
// A mapping is no block: munmap, mremap, mprotect and a mapping over it cut it into pieces.
// CachedReading as an array of disjoint ranges in private memory, the highest first, because the
// kernel hands out addresses downwards: a new mapping is usually appended. What the array holds is
// published as LiveRange entries of the session. Addresses and sizes are of whole pages.
//
// Only what is told here is known: a range mapped by the loader or inside libc is nobody's, and
// changing it changes nothing. The array survives a fork (the child has the same mappings).
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"
#include "recorder/live/holder_table.h"

namespace oomrec::live {

using session::RangeKind;

inline constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t page_down(std::uint64_t address) noexcept {
  return address & ~(kPageBytes - 1);
}
constexpr std::uint64_t page_up(std::uint64_t address) noexcept {
  return page_down(address + kPageBytes - 1);
}

struct Range {
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t holder;  // 0 unless counted
  std::uint32_t slot;    // in live_ranges; 0: not published
  RangeKind kind;
  bool anonymous;  // would count, once made writable
};

// What a call changed in the figures of space `map`.
struct RangeChange {
  std::uint64_t added_bytes = 0;
  std::uint64_t added_count = 0;
  std::uint64_t removed_bytes = 0;
  std::int64_t removed_count = 0;  // negative where one range became two
  std::int64_t reserved_bytes = 0;
  std::uint64_t dropped = 0;  // there was no room to remember it
};

class RangeTable {
 public:
  explicit constexpr RangeTable(HolderTable& holders) noexcept : holders_(holders) {}

  // A new mapping, also over existing ones. `grow`: the holder's range that ends where this one
  // begins is made longer (brk).
  RangeChange map(InHook, std::uint64_t start, std::uint64_t bytes, RangeKind, bool anonymous,
                  std::uint32_t holder, std::uint32_t birth_s, bool grow) noexcept;
  RangeChange unmap(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;

  // The kind goes along; what counts now belongs to `holder`. old_bytes 0 (a second mapping of
  // shared memory) leaves the old range.
  RangeChange remap(InHook, std::uint64_t old_start, std::uint64_t old_bytes,
                    std::uint64_t new_start, std::uint64_t new_bytes, std::uint32_t holder,
                    std::uint32_t birth_s) noexcept;

  // Anonymous memory made writable counts from now on; made inaccessible it is a reservation. What
  // was counted and becomes read-only or executable still holds its pages, and stays.
  RangeChange protect(InHook, std::uint64_t start, std::uint64_t bytes, int protection,
                      std::uint32_t holder, std::uint32_t birth_s) noexcept;

  // Bytes of [start, start + bytes) that count, and that protect() would make count.
  std::uint64_t counted_bytes(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;
  std::uint64_t promotable_bytes(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;

  // After a fork, before the child has a session: entries and holders were the parent's. Tells what
  // the child has mapped, as if added now. A table that was changing at that moment is empty.
  RangeChange detach(InHook) noexcept;
  // The child's session is there: publishes everything, for `holder`, and tells it likewise.
  RangeChange adopt(InHook, std::uint32_t holder) noexcept;

  // For tests: visits every range, highest first.
  template <class Visit>
  void for_each(Visit&& visit) const noexcept {
    for (std::uint32_t at = 0; at < count_; ++at) visit(ranges_[at]);
  }

 private:
  static constexpr std::uint32_t kMaxRanges = 64 * 1024;  // as many as the kernel allows by default

  std::uint32_t first_below(std::uint64_t address) const noexcept;
  bool insert_at(InHook, std::uint32_t at, const Range&) noexcept;
  void erase_at(InHook, std::uint32_t at) noexcept;
  bool reserve_one_more(InHook) noexcept;

  void carve(InHook, std::uint64_t start, std::uint64_t end, RangeChange&) noexcept;
  void set(InHook, Range, std::uint32_t birth_s, bool grow, RangeChange&) noexcept;
  void uncount(InHook, const Range&, std::uint64_t bytes, std::int64_t ranges,
               RangeChange&) noexcept;

  RangeChange sum() const noexcept;
  void publish(InHook, Range&, std::uint32_t birth_s) noexcept;
  void republish(const Range&) noexcept;
  void unpublish(Range&) noexcept;

  HolderTable& holders_;
  system::SpinLock lock_;
  Range* ranges_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t free_slot_ = 0;  // head of the list through LiveRange::reserved
};

}  // namespace oomrec::live
