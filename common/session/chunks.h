// Computes the chunk of a table's entry, and its position in it.
//
// Chunks double from kFirstChunkBytes to kLargestChunkBytes and hold whole entries. So a lookup is
// bit arithmetic and at most a step or two; with a constant entry size it needs no division by a
// variable. Shared by writer and reader; only this file implements the rule of layout.h.
#pragma once

#include <bit>

#include "common/session/layout.h"

namespace oomrec::session {

class Chunks {
 public:
  struct Slot {
    u32 chunk;
    u32 byte;
  };

  // `entry_bytes` is 1 … kMaxEntryBytes.
  constexpr explicit Chunks(u32 entry_bytes) noexcept : entry_bytes_(entry_bytes) {
    for (u32 chunk = 0; chunk < kDoubling; ++chunk) {
      first_[chunk + 1] = first_[chunk] + capacity(chunk);
    }
  }

  constexpr u32 entry_bytes() const noexcept { return entry_bytes_; }

  // Entries in chunk `chunk`.
  constexpr u32 capacity(u32 chunk) const noexcept {
    return static_cast<u32>(chunk_bytes(chunk)) / entry_bytes_;
  }

  // Number of the first entry of chunk `chunk`; of chunk kMaxChunks: the table's capacity.
  constexpr u64 first(u32 chunk) const noexcept {
    if (chunk <= kDoubling) return first_[chunk];
    return first_[kDoubling] + u64{chunk - kDoubling} * capacity(kDoubling);
  }

  constexpr Slot locate(u64 index) const noexcept {
    if (index >= first_[kDoubling]) {
      const u64 beyond = index - first_[kDoubling];
      const u64 each = capacity(kDoubling);
      return {static_cast<u32>(kDoubling + beyond / each),
              static_cast<u32>(beyond % each * entry_bytes_)};
    }
    // Assumes that no chunk loses bytes to rounding, so it never goes too far; then steps on.
    u32 chunk = static_cast<u32>(std::bit_width(index * entry_bytes_ / kFirstChunkBytes + 1)) - 1;
    while (index >= first_[chunk + 1]) ++chunk;
    return {chunk, static_cast<u32>(index - first_[chunk]) * entry_bytes_};
  }

 private:
  static constexpr u32 kDoubling = 10;  // the first chunk of kLargestChunkBytes
  static_assert(chunk_bytes(kDoubling) == kLargestChunkBytes &&
                chunk_bytes(kDoubling - 1) < kLargestChunkBytes);

  u32 entry_bytes_;
  u32 first_[kDoubling + 1] = {};
};

}  // namespace oomrec::session
