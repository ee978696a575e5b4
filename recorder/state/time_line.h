// Which ticks have a slot in a table of constant size.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// `kSlots` ticks, a power of two of ticks apart. When the table is full the distance doubles, and
// from then on each new tick replaces one that now lies too close. So the table is not in order of
// time: readers sort. An entry whose time is 0 is being written.
template <std::uint32_t kSlots>
class TimeLine {
 public:
  static constexpr std::uint32_t kNone = kSlots;

  // Whether tick number `tick` gets a slot.
  bool wants(std::uint32_t tick) const noexcept { return tick % spacing_ == 0; }
  std::uint32_t spacing() const noexcept { return spacing_; }

  // Its slot: below count(), count() itself for a new one, or kNone: it lies too close itself.
  std::uint32_t slot(std::uint32_t tick) noexcept {
    if (count_ < kSlots) {
      ticks_[count_] = tick;
      return count_;
    }
    while (true) {
      for (; cursor_ < kSlots; ++cursor_) {
        if (ticks_[cursor_] % spacing_ != 0) {
          ticks_[cursor_] = tick;
          return cursor_++;
        }
      }
      cursor_ = 0;
      spacing_ *= 2;
      if (!wants(tick)) return kNone;
    }
  }
  std::uint32_t count() const noexcept { return count_; }
  void added() noexcept { ++count_; }
  void reset() noexcept {
    count_ = cursor_ = 0;
    spacing_ = 1;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t cursor_ = 0;
  std::uint32_t spacing_ = 1;
  std::uint32_t ticks_[kSlots] = {};
};

}  // namespace oomrec::recorder
