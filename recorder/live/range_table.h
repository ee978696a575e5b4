// Mappings: which address ranges the program has mapped, and which of them count.
//
// A mapping is not a block: munmap, mremap, mprotect and a mapping over it cut it into pieces. The
// table is an array of disjoint ranges in private memory, the highest first: the kernel hands out
// addresses downwards, so a new mapping is usually appended. Its ranges are published as LiveRange
// entries of the session. Addresses and sizes are of whole pages.
//
// Mappings made by the loader or inside libc are not in the table, and changing them has no effect.
// The array survives a fork (the child has the same mappings).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/live/growers.h"
#include "recorder/live/holder_table.h"
#include "recorder/session/reuse.h"

namespace oomrec::live {

using session::RangeKind;

struct Range {
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t holder;  // 0 unless counted or usable
  std::uint32_t slot;    // in live_ranges; 0: not published
  RangeKind kind;
  bool anonymous;        // would count, once made writable
  bool of_pool = false;  // of the parent's, between detach() and adopt()
  // Of those of reserve(), which have a holder: what of them counts.
  bool is_usable = false;
  bool was_looked_at = false;
  bool is_sparse = false;  // MAP_NORESERVE: the kernel does not account for it either
  std::uint64_t touched_bytes = 0;
};

// How a call changed the figures of space `map`.
struct RangeChange {
  std::uint64_t added_bytes = 0;
  std::uint64_t added_count = 0;
  std::uint64_t removed_bytes = 0;
  std::int64_t removed_count = 0;  // negative where one range became two
  std::int64_t reserved_bytes = 0;
  std::uint64_t dropped = 0;  // ranges that the table had no room for
};

// Whether a new range may extend the holder's adjacent one, as for brk().
enum class Growth : bool { separate, extend };

// Whose doing is what a look finds to have been touched since the last one.
struct Credit {
  std::span<const Growers::Part> sampled;
  // If nothing was sampled: the holder of the stack that looks. Not of what the first look finds.
  std::uint32_t running = 0;
  std::uint32_t now_s = 0;
};

enum class Sparse : std::uint8_t { no, reserved, usable };

class RangeTable {
 public:
  explicit constexpr RangeTable(HolderTable& holders) noexcept : holders_(holders) {}

  // A new mapping, also over existing ones. Growth::extend: extends the holder's range that ends
  // where this one begins.
  RangeChange map(InHook, std::uint64_t start, std::uint64_t bytes, RangeKind, bool anonymous,
                  std::uint32_t holder, std::uint32_t birth_s,
                  Growth growth = Growth::separate) noexcept;
  RangeChange unmap(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;

  // The new range has the old one's kind, and belongs to `holder` if it counts. old_bytes 0 (a
  // second mapping of shared memory) keeps the old range.
  RangeChange remap(InHook, std::uint64_t old_start, std::uint64_t old_bytes,
                    std::uint64_t new_start, std::uint64_t new_bytes, std::uint32_t holder,
                    std::uint32_t birth_s) noexcept;

  // Anonymous memory counts once it is writable; made inaccessible, it is a reservation. Counted
  // memory that becomes read-only or executable keeps its pages, and still counts. Of a private
  // file mapping that becomes writable counts what a look finds.
  RangeChange protect(InHook, std::uint64_t start, std::uint64_t bytes, int protection,
                      std::uint32_t holder, std::uint32_t birth_s) noexcept;

  // A new reservation that is writable as it is, or a file mapping of which a part may count.
  RangeChange reserve(InHook, std::uint64_t start, std::uint64_t bytes, RangeKind,
                      std::uint32_t holder, std::uint32_t birth_s) noexcept;
  // The reservation that is mapped there is sparse.
  void set_sparse(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;
  // What all of this lies in: a sparse reservation, a range of reserve(), or something else.
  Sparse sparseness_of(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;
  // A look at the pages of a usable range, from `start` to `end` or a part of it: so much of
  // it counts from now on.
  // What of a reservation is more than at the last look is divided as `credit` says. All else is
  // the range's own holder's.
  RangeChange set_touched(InHook, std::uint64_t start, std::uint64_t end,
                          std::uint64_t touched_bytes, const Credit&) noexcept;
  // There was no time to look: all of them counts.
  RangeChange set_all_touched(InHook) noexcept;
  template <class Visit>
  void for_each_share(Visit&& visit) noexcept {
    const system::MutexGuard guard(lock_);
    if (guard) growers_.for_each(visit);
  }

  // Of all usable ranges, touched or not.
  std::uint64_t usable_bytes() const noexcept {
    return usable_bytes_.load(std::memory_order_relaxed);
  }

  // Bytes of [start, start + bytes) that count, and that protect() would make count.
  std::uint64_t counted_bytes(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;
  std::uint64_t promotable_bytes(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;
  // Whether protect() would make a private file mapping writable that was not before.
  bool has_unwritten_file(InHook, std::uint64_t start, std::uint64_t bytes) noexcept;

  // After a fork, before the child has a session: drops the parent's entries and holders, but
  // remembers which ranges are those of its holder `pool` (0: none). Returns
  // what the child has mapped, as if added now. A table that another thread was changing is empty.
  RangeChange detach(InHook, std::uint32_t pool) noexcept;
  // Forgets all ranges; no other thread may be using them.
  void clear(InHook) noexcept;
  // Once the child has a session: publishes everything for `holder`, and those of the parent's pool
  // for `pool`. Returns the same.
  RangeChange adopt(InHook, std::uint32_t holder, std::uint32_t pool) noexcept;

  // For tests: visits every range, highest first.
  template <class Visit>
  void for_each(Visit&& visit) const noexcept {
    for (std::uint32_t at = 0; at < count_; ++at) visit(ranges_[at]);
  }

 private:
  static constexpr std::uint32_t kFirstRanges = 128;
  static constexpr std::uint32_t kMaxRanges = 64 * 1024;  // as many as the kernel allows by default

  std::uint32_t first_below(std::uint64_t address) const noexcept;
  bool insert_at(InHook, std::uint32_t at, const Range&) noexcept;
  void erase_at(InHook, std::uint32_t at) noexcept;
  bool reserve_one_more(InHook) noexcept;

  void carve(InHook, std::uint64_t start, std::uint64_t end, RangeChange&) noexcept;
  void set(InHook, Range, std::uint32_t birth_s, Growth, RangeChange&) noexcept;
  void recount(InHook, Range&, std::uint64_t touched_bytes, RangeChange&,
               std::span<const Growers::Part> growers = {}, std::uint32_t now_s = 0) noexcept;
  void uncount(InHook, const Range&, std::uint64_t bytes, std::int64_t ranges,
               RangeChange&) noexcept;

  RangeChange sum() const noexcept;
  void publish(InHook, Range&, std::uint32_t birth_s) noexcept;
  void write(const Range&, std::uint32_t birth_s) noexcept;
  void republish(const Range&) noexcept;
  void unpublish(Range&) noexcept;

  HolderTable& holders_;
  Growers growers_;
  system::Mutex lock_;
  Range* ranges_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t capacity_ = 0;
  std::atomic<std::uint64_t> usable_bytes_{0};
  session::Slots<session::LiveRange, &session::LiveRange::start> slots_;
};

}  // namespace oomrec::live
