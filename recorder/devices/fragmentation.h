// How large a piece PyTorch's allocator could still serve from what it has reserved.
//
// Its segments are the driver's blocks, and runs of adjacent mappings (expandable segments), in
// which blocks of space torch lie; what lies between those is free. Blocks are known as the heap's
// are: in sampled mode most of those below 64 KiB are missing, so that the figure is an upper
// bound, and a segment without a known block is not seen as PyTorch's. What the driver holds in
// pieces cannot be seen.
//
// Reads the session alone, takes no lock: for the moment in which a bundle is written, and for
// readers of a recording.
#pragma once

#include <cstdint>

#include "common/session/view.h"

namespace oomrec::recorder {

inline constexpr std::uint32_t kMostPieces = 64 * 1024;  // segments and blocks in them

// In bytes; 0: PyTorch has nothing there, or no free piece; kUnlimited: not known (too many, or no
// memory to sort them in). Maps 1 MiB meanwhile. Milliseconds.
std::uint64_t largest_torch_piece(const session::View&, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder
