// The figures of a holder in one word (entries.h, HolderEntry). Most stacks allocate a few blocks
// of one size and never again.
//
//   0–14 bytes of each block · 15–22 blocks allocated · 23–30 freed · 31–38 temporary ·
//   39–46 live at the last peak step · 47–62 number of that step (Holder::peak_epoch) · 63 zero
//
// If a holder's figures do not fit, bit 63 is set, and the low 32 bits are the number of its entry
// in `full_holders`. Writers replace the whole word atomically: a reader finds figures that belong
// together, after a SIGKILL too.
#pragma once

#include "common/session/layout.h"

namespace oomrec::session {

// What a thread adds to a holder.
struct HolderChange {
  u64 allocated_bytes, freed_bytes;
  u64 allocated, freed;  // blocks
  u64 temporary;         // of these

  u64 live_bytes() const noexcept { return allocated_bytes - freed_bytes; }  // may wrap below zero
  u64 live_count() const noexcept { return allocated - freed; }
};

struct BriefHolder {
  u64 bytes = 0;  // of each block
  u64 allocated = 0, freed = 0, temporary = 0;
  u64 peak = 0;
  u64 peak_epoch = 0;

  u64 live() const noexcept { return allocated - freed; }  // may wrap below zero

  // `change` happened before the peak step `now` if `epoch` is an earlier one. False: it does not
  // fit, and this is left undefined.
  bool add(const HolderChange& change, u32 epoch, u32 now) noexcept {
    if (allocated == 0 && freed == 0) {
      if (change.allocated != 0)
        bytes = change.allocated_bytes / change.allocated;
      else if (change.freed != 0)
        bytes = change.freed_bytes / change.freed;
    }
    if (bytes * change.allocated != change.allocated_bytes ||
        bytes * change.freed != change.freed_bytes)
      return false;
    if (epoch == now && peak_epoch != now) {
      peak = live();
      peak_epoch = now;
    } else if (epoch != now && peak_epoch == now) {
      peak += change.live_count();
    }
    allocated += change.allocated;
    freed += change.freed;
    temporary += change.temporary;
    return fits();
  }

  bool fits() const noexcept {
    return bytes <= kMostBytesEach && allocated <= kMostBlocks && freed <= kMostBlocks &&
           temporary <= kMostBlocks && peak <= kMostBlocks && peak_epoch <= kMostEpochs;
  }

  u64 packed() const noexcept {
    return bytes | allocated << 15 | freed << 23 | temporary << 31 | peak << 39 |
           (peak_epoch & kMostEpochs) << 47;
  }
  static BriefHolder unpacked(u64 word) noexcept {
    const auto count = [&](unsigned at) { return word >> at & kMostBlocks; };
    return {word & kMostBytesEach,   count(15), count(23), count(31), count(39),
            word >> 47 & kMostEpochs};
  }

  // Fills in all but node, space, flags and api.
  void expand(Holder& holder) const noexcept {
    const auto set = [](auto& word, u64 value) noexcept {
      word.store(static_cast<decltype(word.load())>(value), std::memory_order_relaxed);
    };
    set(holder.live_bytes, bytes * live());
    set(holder.live_count, live());
    set(holder.total_bytes, bytes * allocated);
    set(holder.total_count, allocated);
    set(holder.peak_bytes, bytes * peak);
    set(holder.peak_count, peak);
    set(holder.peak_epoch, peak_epoch);
    set(holder.temporary_count, temporary);
  }

  static constexpr u64 kMostBytesEach = (1u << 15) - 1, kMostBlocks = 255;
  // A step is 1 % above the last one, so that 64-bit figures have some 4,000.
  static constexpr u64 kMostEpochs = (1u << 16) - 1;
};

inline constexpr u64 kFullHolder = u64{1} << 63;
constexpr bool is_full(u64 figures) noexcept { return (figures & kFullHolder) != 0; }
constexpr u32 full_number(u64 figures) noexcept { return static_cast<u32>(figures); }

}  // namespace oomrec::session
