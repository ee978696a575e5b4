// The numbers of a table's entries that may be used again, as bits: level 0 has one for each
// number, and each level above it one for each word below that is not zero. So the next number
// above a given one is found in a few words.
//
// Private memory, mapped with the first number of a piece. Every call under the caller's lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "common/system/atomics.h"
#include "recorder/session/private_array.h"

namespace oomrec::session {

class FreeNumbers {
 public:
  static constexpr std::uint32_t kMost = 1u << 24;

  // False: no memory for it, and the number is lost.
  bool give_back(InHook hook, std::uint32_t number) noexcept {
    if (!numbers_.prepare(hook, number / 64) || !words_.prepare(hook, number / kOfWord))
      return false;
    set(*numbers_.find(number / 64), number);
    set(*words_.find(number / kOfWord), number / 64);
    set(parts_[number / kOfPart], number / kOfWord);
    add_own(count_, std::uint32_t{1});
    return true;
  }

  // Takes the lowest one that is at least `least`; 0: there is none. (Number 0 is never free.)
  std::uint32_t take(std::uint32_t least) noexcept {
    if (count() == 0) return 0;
    std::uint32_t word = least / 64;
    std::uint64_t found = above(numbers_.find(word), least % 64);
    if (found == 0) {
      word = next_word(word + 1);
      if (word == 0) return 0;
      found = *numbers_.find(word);
    }
    const std::uint32_t number = word * 64 + lowest(found);
    clear(number);
    return number;
  }

  // Also without the lock.
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  void reset(InHook hook) noexcept {
    numbers_.reset(hook);
    words_.reset(hook);
    for (std::uint64_t& part : parts_) part = 0;
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kOfWord = 64 * 64, kOfPart = 64 * kOfWord;

  static void set(std::uint64_t& bits, std::uint32_t bit) noexcept {
    bits |= std::uint64_t{1} << bit % 64;
  }
  static bool unset(std::uint64_t& bits, std::uint32_t bit) noexcept {
    return (bits &= ~(std::uint64_t{1} << bit % 64)) == 0;
  }
  static std::uint32_t lowest(std::uint64_t bits) noexcept {
    return static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  static std::uint64_t above(const std::uint64_t* bits, std::uint32_t from) noexcept {
    return bits == nullptr ? 0 : *bits >> from << from;
  }

  // The first word of numbers from `from` on that is not zero; 0: there is none.
  std::uint32_t next_word(std::uint32_t from) const noexcept {
    if (from >= kMost / 64) return 0;
    std::uint32_t summary = from / 64;
    if (const std::uint64_t found = above(words_.find(summary), from % 64))
      return summary * 64 + lowest(found);
    std::uint32_t part = ++summary / 64;
    if (part == kMost / kOfPart) return 0;
    std::uint64_t found = above(&parts_[part], summary % 64);
    while (found == 0 && ++part != kMost / kOfPart) found = parts_[part];
    if (found == 0) return 0;
    summary = part * 64 + lowest(found);
    return summary * 64 + lowest(*words_.find(summary));
  }

  void clear(std::uint32_t number) noexcept {
    add_own(count_, ~std::uint32_t{0});
    if (unset(*numbers_.find(number / 64), number) &&
        unset(*words_.find(number / kOfWord), number / 64))
      unset(parts_[number / kOfPart], number / kOfWord);
  }

  PrivateArray<std::uint64_t, kMost / 64> numbers_;
  PrivateArray<std::uint64_t, kMost / 64 / 64> words_;
  std::uint64_t parts_[kMost / kOfPart] = {};
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace oomrec::session
