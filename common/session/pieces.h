// How the writer maps a session's file: in pieces that double in size up to a segment, so that a
// short recording takes little address space, then segment by segment.
#pragma once

#include <bit>

#include "common/session/layout.h"

namespace oomrec::session {

inline constexpr u64 kFirstPieceBytes = u64{512} << 10;
// Pieces of the first segment: 512 KiB twice, then 1, 2, 4 and 8 MiB.
inline constexpr u32 kSmallPieces = std::bit_width(kSegmentBytes / kFirstPieceBytes);
inline constexpr u32 kMaxPieces = kSmallPieces + kMaxSegments - 1;

// The piece that the file's byte `offset` is in.
constexpr u32 piece_of(u64 offset) noexcept {
  if (offset < kSegmentBytes) return static_cast<u32>(std::bit_width(offset / kFirstPieceBytes));
  return static_cast<u32>(kSmallPieces - 1 + offset / kSegmentBytes);
}

// Where a piece begins in the file; of kMaxPieces: kMostBytes.
constexpr u64 piece_start(u32 piece) noexcept {
  if (piece == 0) return 0;
  if (piece <= kSmallPieces) return kFirstPieceBytes << (piece - 1);
  return (piece - kSmallPieces + 1) * kSegmentBytes;
}

static_assert(piece_of(kFirstPieceBytes - 1) == 0 && piece_of(kFirstPieceBytes) == 1);
static_assert(piece_of(kSegmentBytes - 1) == kSmallPieces - 1);
static_assert(piece_of(kSegmentBytes) == kSmallPieces &&
              piece_start(kSmallPieces) == kSegmentBytes);
static_assert(piece_start(kMaxPieces) == kMostBytes && piece_of(kMostBytes - 1) == kMaxPieces - 1);

}  // namespace oomrec::session
