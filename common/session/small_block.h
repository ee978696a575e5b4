// A word of the side table: one small live block of the heap (layout.h, SidePage).
//
//   0–25 node of its stack; 0: no block here · 26–40 usable bytes · 41–42 where in its 2^shift
//   bytes it starts, in units of 8 · 43–63 birth
//
// Birth: seconds since start up to 2^20 (12 days), then 64-second steps (another two years); later
// times are cut to the maximum.
#pragma once

#include "common/session/layout.h"

namespace oomrec::session {

inline constexpr u32 kSmallBlockBytes = 1u << 15;  // smallest size that is not small
inline constexpr u32 kSmallBlockNodes = 1u << 26;  // nor is a block with this node or a later one

struct SmallBlock {
  u64 address;
  u32 bytes;
  u32 node;
  u32 birth_s;
};

constexpr u64 packed_birth(u64 seconds) noexcept {
  constexpr u64 kSeconds = 1u << 20, kLast = (1u << 21) - 1;
  if (seconds < kSeconds) return seconds;
  const u64 coarse = kSeconds + (seconds - kSeconds) / 64;
  return coarse < kLast ? coarse : kLast;
}
constexpr u32 unpacked_birth(u64 field) noexcept {
  constexpr u64 kSeconds = 1u << 20;
  return static_cast<u32>(field < kSeconds ? field : kSeconds + (field - kSeconds) * 64);
}

constexpr u64 birth_bits(u64 seconds) noexcept { return packed_birth(seconds) << 43; }
constexpr u64 packed(u64 address, u64 bytes, u64 node, u64 birth, u32 shift) noexcept {
  const u64 begins = (address >> 3) & ((1u << (shift - 3)) - 1);
  return node | bytes << 26 | begins << 41 | birth;
}
constexpr u64 packed(const SmallBlock& block, u32 shift) noexcept {
  return packed(block.address, block.bytes, block.node, birth_bits(block.birth_s), shift);
}
// Whether `word` is the block's at `address`, if it has one.
constexpr bool begins_at(u64 word, u64 address, u32 shift) noexcept {
  return ((word >> 41 ^ address >> 3) & ((1u << (shift - 3)) - 1)) == 0;
}
// `word` is that of the slot that starts at address `slot`.
constexpr SmallBlock unpacked(u64 word, u64 slot) noexcept {
  return {slot + (word >> 41 & 3) * 8, static_cast<u32>(word >> 26) & (kSmallBlockBytes - 1),
          static_cast<u32>(word) & (kSmallBlockNodes - 1), unpacked_birth(word >> 43)};
}

constexpr SmallBlock kSampleBlock{0x5555'0000'0030, 32767, kSmallBlockNodes - 1, 77};
static_assert(unpacked(packed(kSampleBlock, 5), 0x5555'0000'0020).address == kSampleBlock.address &&
              unpacked(packed(kSampleBlock, 5), 0).bytes == kSampleBlock.bytes &&
              unpacked(packed(kSampleBlock, 5), 0).node == kSampleBlock.node &&
              unpacked(packed(kSampleBlock, 5), 0).birth_s == kSampleBlock.birth_s);

}  // namespace oomrec::session
