// A hash from keys stored elsewhere to the numbers of their entries, in private memory.
//
// Open addressing, linear probing, 8 bytes a slot: {32 bits of the hash, number}. The caller
// compares the key in the entry. Where outgrown tables are kept, find() needs no lock: while
// another thread erases or inserts, it may miss a key, so look again under the lock before you add
// one. Everything else needs the caller's lock. Grows by mmap; fails when there is no memory or the
// budget is used up.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/machine/page.h"
#include "common/system/hook_scope.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"

namespace oomrec::session {

// How much all indexes together may map, and have mapped.
inline constinit std::atomic<std::uint64_t> g_index_budget_bytes{~std::uint64_t{0}};
inline constinit std::atomic<std::uint64_t> g_index_bytes{0};

constexpr std::uint64_t mix(std::uint64_t key) noexcept {
  key *= 0x9e3779b97f4a7c15ULL;
  key ^= key >> 32;
  key *= 0xd6e8feb86659fd93ULL;
  return key ^ (key >> 29);
}

enum class Outgrown : bool { unmap, keep };  // keep: readers without the lock may still be in it
enum class InBudget : bool { no, yes };

template <Outgrown kOutgrown, InBudget kInBudget = InBudget::yes>
class Index {
 public:
  // The number in a slot with this hash for which matches(number) holds; 0: none.
  template <class Matches>
  std::uint32_t find(std::uint64_t hash, Matches&& matches) const noexcept {
    const Slots* const slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr) return 0;
    for (std::uint64_t at = home(slots, hash);; at = next(slots, at)) {
      const std::uint64_t slot = slots->at[at].load(std::memory_order_acquire);
      if (slot == 0) return 0;
      if (tag_of(slot) == static_cast<std::uint32_t>(hash) && matches(number_of(slot))) {
        return number_of(slot);
      }
    }
  }

  // Fetches the slot that find() begins with, and a number that it may return; 0: none.
  void prefetch(std::uint64_t hash) const noexcept {
    if (const Slots* const slots = slots_.load(std::memory_order_acquire))
      __builtin_prefetch(&slots->at[home(slots, hash)]);
  }
  std::uint32_t likely(std::uint64_t hash) const noexcept {
    const Slots* const slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr) return 0;
    const std::uint64_t slot = slots->at[home(slots, hash)].load(std::memory_order_relaxed);
    return tag_of(slot) == static_cast<std::uint32_t>(hash) ? number_of(slot) : 0;
  }

  // Maps the first table, for a process that may not map memory later. False: no memory.
  bool prepare(InHook) noexcept {
    return slots_.load(std::memory_order_relaxed) != nullptr || grow();
  }

  // Adds a key that is not there yet. False: no memory.
  bool insert(InHook, std::uint64_t hash, std::uint32_t number) noexcept {
    const Slots* const slots = slots_.load(std::memory_order_relaxed);
    if ((slots == nullptr || used_ * 4 >= (slots->mask + 1) * 3) && !grow() &&
        (slots == nullptr || used_ * 16 >= (slots->mask + 1) * 15)) {
      return false;
    }
    put(slots_.load(std::memory_order_relaxed), hash, number);
    ++used_;
    return true;
  }

  // Removes a key and returns its number; 0: it was not there.
  template <class Matches>
  std::uint32_t erase(std::uint64_t hash, Matches&& matches) noexcept {
    Slots* const slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr) return 0;
    for (std::uint64_t at = home(slots, hash);; at = next(slots, at)) {
      const std::uint64_t slot = slots->at[at].load(std::memory_order_relaxed);
      if (slot == 0) return 0;
      if (tag_of(slot) == static_cast<std::uint32_t>(hash) && matches(number_of(slot))) {
        close_gap(slots, at);
        --used_;
        return number_of(slot);
      }
    }
  }

  // Unmaps everything; nobody may be reading.
  void reset(InHook) noexcept {
    Slots* const current = slots_.exchange(nullptr);
    for (Slots* slots = current; slots != nullptr;) {
      Slots* const older = slots->older;
      if (slots == current) uncount(bytes_of(slots->mask + 1));
      unmap(slots);
      slots = older;
    }
    used_ = 0;
  }

 private:
  struct Slots {
    std::uint64_t mask;
    Slots* older;
    std::atomic<std::uint64_t> at[];
  };
  static constexpr std::uint64_t kFirstSlots = 256;

  static std::uint32_t tag_of(std::uint64_t slot) noexcept {
    return static_cast<std::uint32_t>(slot >> 32);
  }
  static std::uint32_t number_of(std::uint64_t slot) noexcept {
    return static_cast<std::uint32_t>(slot);
  }
  static std::uint64_t home(const Slots* slots, std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash) & slots->mask;
  }
  static std::uint64_t next(const Slots* slots, std::uint64_t at) noexcept {
    return (at + 1) & slots->mask;
  }
  static std::uint64_t bytes_of(std::uint64_t slots) noexcept { return sizeof(Slots) + slots * 8; }

  static void put(Slots* slots, std::uint64_t hash, std::uint32_t number) noexcept {
    std::uint64_t at = home(slots, hash);
    while (slots->at[at].load(std::memory_order_relaxed) != 0) at = next(slots, at);
    slots->at[at].store(hash << 32 | number, std::memory_order_release);
  }

  // Moves back entries that were displaced by the slot that is now free.
  static void close_gap(Slots* slots, std::uint64_t gap) noexcept {
    for (std::uint64_t at = next(slots, gap);; at = next(slots, at)) {
      const std::uint64_t slot = slots->at[at].load(std::memory_order_relaxed);
      if (slot == 0) break;
      if (((at - home(slots, tag_of(slot))) & slots->mask) >= ((at - gap) & slots->mask)) {
        slots->at[gap].store(slot, std::memory_order_release);
        gap = at;
      }
    }
    slots->at[gap].store(0, std::memory_order_relaxed);
  }

  // False: that would exceed the budget.
  static bool count(std::uint64_t bytes) noexcept {
    if (kInBudget == InBudget::no) return true;
    const std::uint64_t before = g_index_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (before + bytes <= g_index_budget_bytes.load(std::memory_order_relaxed)) return true;
    uncount(bytes);
    return false;
  }
  static void uncount(std::uint64_t bytes) noexcept {
    if (kInBudget == InBudget::yes) g_index_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }

  static void unmap(Slots* slots) noexcept { system::unmap(slots, bytes_of(slots->mask + 1)); }

  // Its address space stays, and the page with its mask: a reader in it finds nothing.
  static void give_up_memory(Slots* slots) noexcept {
    const std::uint64_t page = machine::page_bytes(), bytes = bytes_of(slots->mask + 1);
    if (bytes > page)
      system::call(SYS_madvise, reinterpret_cast<std::byte*>(slots) + page, bytes - page,
                   MADV_DONTNEED);
  }

  [[gnu::noinline]] bool grow() noexcept {
    Slots* const old = slots_.load(std::memory_order_relaxed);
    const std::uint64_t slots = old == nullptr ? kFirstSlots : (old->mask + 1) * 2;
    const std::uint64_t bytes = bytes_of(slots);
    if (!count(bytes)) return false;
    auto* const larger = static_cast<Slots*>(system::map_private(bytes));
    if (larger == nullptr) {
      uncount(bytes);
      return false;
    }
    larger->mask = slots - 1;
    for (std::uint64_t at = 0; old != nullptr && at <= old->mask; ++at) {
      const std::uint64_t slot = old->at[at].load(std::memory_order_relaxed);
      if (slot != 0) put(larger, tag_of(slot), number_of(slot));
    }
    larger->older = kOutgrown == Outgrown::keep ? old : nullptr;
    slots_.store(larger, std::memory_order_release);
    if (old == nullptr) return true;
    uncount(bytes_of(old->mask + 1));
    if (kOutgrown == Outgrown::unmap)
      unmap(old);
    else
      give_up_memory(old);
    return true;
  }

  std::atomic<Slots*> slots_{nullptr};
  std::uint64_t used_ = 0;
};

}  // namespace oomrec::session
