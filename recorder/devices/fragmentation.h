// How large a request PyTorch's allocator could still serve from what it has reserved.
//
// Its segments are the driver's blocks, and runs of adjacent mappings (expandable segments), in
// which blocks of space torch lie; what lies between those is free. Blocks are on record as the
// heap's are: sampled mode misses most of those below 64 KiB. So the figure is an upper bound, and
// a segment without a recorded block is not recognized as PyTorch's. Fragmentation inside the
// driver cannot be seen.
//
// Reads the session alone and takes no lock, so it serves the writer of a bundle and readers of a
// recording.
#pragma once

#include <cstdint>

#include "common/session/view.h"

namespace oomrec::recorder {

inline constexpr std::uint32_t kMostPieces = 64 * 1024;  // segments and blocks in them

// In bytes. 0: PyTorch has nothing there, or nothing free. kUnlimited: unknown (too many pieces, or
// no memory to sort them in). Maps 1 MiB meanwhile. Takes milliseconds.
std::uint64_t largest_torch_piece(const session::View&, std::uint32_t device) noexcept;

}  // namespace oomrec::recorder
