// One bit for every 16 bytes of the interpreter's pools: whether an object is recorded at that
// address. So the free of any other object costs two loads, wherever objects lie close together.
//
// Bits come in spans of a MiB of address space. A span is added with its first object and never
// removed, because the interpreter gets the same addresses again. Its bits are private memory: 8
// KiB for a MiB of objects.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/mutex.h"

namespace oomrec::live {

class ObjectBits {
 public:
  // False: no object is recorded at `address`. The quick half of holds(): makes no call, so that a
  // function that asks needs no frame.
  bool may_hold(std::uint64_t address) const noexcept {
    const Span& span = spans_[place_of(number_of(address))];
    const std::uint64_t found = span.number.load(std::memory_order_acquire);
    if (found == number_of(address)) [[likely]]
      return is_set(word_in(span, address), address);
    return found != 0;
  }
  bool holds(std::uint64_t address) const noexcept;

  // False: no memory for its span, or too many spans.
  bool add(InHook, std::uint64_t address) noexcept;
  void remove(InHook, std::uint64_t address) noexcept;

  // How many bits are set, and how many ever were.
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  std::uint64_t ever() const noexcept { return ever_.load(std::memory_order_relaxed); }

  // In the child of a fork: keeps the parent's objects, which it has, too, but counts anew how many
  // ever were.
  void start_anew(InHook) noexcept;
  // Forgets all objects; no other thread may be using them.
  void clear(InHook) noexcept;

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr unsigned kSpanShift = 20, kSlotShift = 4;
  static constexpr std::size_t kSpanWords = (std::size_t{1} << (kSpanShift - kSlotShift)) / 64;
  static constexpr unsigned kPlaceBits = 13;
  static constexpr std::uint32_t kPlaces = 1 << kPlaceBits;  // 8 GiB of objects
  static constexpr std::uint32_t kProbes = 8;

  struct Span {
    std::atomic<std::uint64_t> number;  // 0: none
    Word* words;                        // stored before `number`
  };

  static std::uint64_t number_of(std::uint64_t address) noexcept {
    return (address >> kSpanShift) + 1;  // not 0, also for a null pointer
  }
  // Scattered: the heap's spans and the pool's are both close together.
  static std::uint64_t place_of(std::uint64_t number) noexcept {
    return number * 0x9e3779b97f4a7c15ULL >> (64 - kPlaceBits);
  }
  static std::uint64_t bit_of(std::uint64_t address) noexcept {
    return std::uint64_t{1} << ((address >> kSlotShift) % 64);
  }
  static bool is_set(const Word* word, std::uint64_t address) noexcept {
    return (word->load(std::memory_order_relaxed) & bit_of(address)) != 0;
  }
  static Word* word_in(const Span& span, std::uint64_t address) noexcept {
    return span.words + (address >> (kSlotShift + 6)) % kSpanWords;
  }
  Word* word_of(std::uint64_t address) const noexcept;
  bool add_span(std::uint64_t number) noexcept;
  Word* new_words() noexcept;

  Span spans_[kPlaces] = {};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint64_t> ever_{0};
  system::Mutex lock_;
  Word* unused_ = nullptr;  // mapped, for the next spans
  std::uint32_t unused_spans_ = 0;
};

}  // namespace oomrec::live
