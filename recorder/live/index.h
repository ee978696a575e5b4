// A hash from keys that live elsewhere to the numbers of their entries, in private memory.
//
// Open addressing, linear probing, 8 bytes a place: {32 bits of the hash, number}. The key itself
// is compared by the caller, in the entry. find() may run while another thread inserts, if nothing
// is ever erased: a table that was outgrown stays mapped until forget(). Everything else needs the
// caller's lock. Grows by mmap only; says no when there is no memory or the budget is used up.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/memory.h"

namespace oomrec::live {

// What all indexes together may map and have mapped.
inline constinit std::atomic<std::uint64_t> g_index_budget_bytes{~std::uint64_t{0}};
inline constinit std::atomic<std::uint64_t> g_index_bytes{0};

constexpr std::uint64_t mix(std::uint64_t key) noexcept {
  key *= 0x9e3779b97f4a7c15ULL;
  key ^= key >> 32;
  key *= 0xd6e8feb86659fd93ULL;
  return key ^ (key >> 29);
}

enum class Outgrown : bool { unmap, keep };  // keep: readers without the lock may still be in it

template <Outgrown kOutgrown>
class Index {
 public:
  // The number whose place has this hash and for which matches(number); 0: none.
  template <class Matches>
  std::uint32_t find(std::uint64_t hash, Matches&& matches) const noexcept {
    const Places* const places = places_.load(std::memory_order_acquire);
    if (places == nullptr) return 0;
    for (std::uint64_t at = home(places, hash);; at = next(places, at)) {
      const std::uint64_t place = places->at[at].load(std::memory_order_acquire);
      if (place == 0) return 0;
      if (tag_of(place) == static_cast<std::uint32_t>(hash) && matches(number_of(place))) {
        return number_of(place);
      }
    }
  }

  // Adds a key that is not there. False: no room.
  bool insert(InHook, std::uint64_t hash, std::uint32_t number) noexcept {
    const Places* const places = places_.load(std::memory_order_relaxed);
    if ((places == nullptr || used_ * 4 >= (places->mask + 1) * 3) && !grow() &&
        (places == nullptr || used_ * 16 >= (places->mask + 1) * 15)) {
      return false;
    }
    put(places_.load(std::memory_order_relaxed), hash, number);
    ++used_;
    return true;
  }

  // Removes a key and returns its number; 0: it was not there.
  template <class Matches>
  std::uint32_t erase(std::uint64_t hash, Matches&& matches) noexcept {
    static_assert(kOutgrown == Outgrown::unmap, "a reader without the lock would miss its key");
    Places* const places = places_.load(std::memory_order_relaxed);
    if (places == nullptr) return 0;
    for (std::uint64_t at = home(places, hash);; at = next(places, at)) {
      const std::uint64_t place = places->at[at].load(std::memory_order_relaxed);
      if (place == 0) return 0;
      if (tag_of(place) == static_cast<std::uint32_t>(hash) && matches(number_of(place))) {
        close_gap(places, at);
        --used_;
        return number_of(place);
      }
    }
  }

  // Unmaps everything; nobody may be reading.
  void forget(InHook) noexcept {
    for (Places* places = places_.exchange(nullptr); places != nullptr;) {
      Places* const older = places->older;
      release(places);
      places = older;
    }
    used_ = 0;
  }

 private:
  struct Places {
    std::uint64_t mask;
    Places* older;
    std::atomic<std::uint64_t> at[];
  };
  static constexpr std::uint64_t kFirstPlaces = 256;

  static std::uint32_t tag_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place >> 32);
  }
  static std::uint32_t number_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place);
  }
  static std::uint64_t home(const Places* places, std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash) & places->mask;
  }
  static std::uint64_t next(const Places* places, std::uint64_t at) noexcept {
    return (at + 1) & places->mask;
  }
  static std::uint64_t bytes_of(std::uint64_t places) noexcept {
    return sizeof(Places) + places * 8;
  }

  static void put(Places* places, std::uint64_t hash, std::uint32_t number) noexcept {
    std::uint64_t at = home(places, hash);
    while (places->at[at].load(std::memory_order_relaxed) != 0) at = next(places, at);
    places->at[at].store(hash << 32 | number, std::memory_order_release);
  }

  // Moves back what stood further from its home because of the place that is now free.
  static void close_gap(Places* places, std::uint64_t gap) noexcept {
    for (std::uint64_t at = next(places, gap);; at = next(places, at)) {
      const std::uint64_t place = places->at[at].load(std::memory_order_relaxed);
      if (place == 0) break;
      if (((at - home(places, tag_of(place))) & places->mask) >= ((at - gap) & places->mask)) {
        places->at[gap].store(place, std::memory_order_relaxed);
        gap = at;
      }
    }
    places->at[gap].store(0, std::memory_order_relaxed);
  }

  static void release(Places* places) noexcept {
    const std::uint64_t bytes = bytes_of(places->mask + 1);
    g_index_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    system::unmap(places, bytes);
  }

  [[gnu::noinline]] bool grow() noexcept {
    Places* const old = places_.load(std::memory_order_relaxed);
    const std::uint64_t places = old == nullptr ? kFirstPlaces : (old->mask + 1) * 2;
    const std::uint64_t bytes = bytes_of(places);
    if (g_index_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes >
        g_index_budget_bytes.load(std::memory_order_relaxed)) {
      g_index_bytes.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    auto* const larger = static_cast<Places*>(system::map_private(bytes));
    if (larger == nullptr) {
      g_index_bytes.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    larger->mask = places - 1;
    for (std::uint64_t at = 0; old != nullptr && at <= old->mask; ++at) {
      const std::uint64_t place = old->at[at].load(std::memory_order_relaxed);
      if (place != 0) put(larger, tag_of(place), number_of(place));
    }
    larger->older = kOutgrown == Outgrown::keep ? old : nullptr;
    places_.store(larger, std::memory_order_release);
    if (kOutgrown == Outgrown::unmap && old != nullptr) release(old);
    return true;
  }

  std::atomic<Places*> places_{nullptr};
  std::uint64_t used_ = 0;
};

}  // namespace oomrec::live
