// What the session shows of PyTorch's allocator: whether it made a call, and how large a request it
// could still serve from what it has reserved.
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

// Whether PyTorch's allocator is in the process, and whether it made a call.

// PyTorch reports its memory to us. From now on a driver's failure under its allocator is
// pending until PyTorch reports the outcome.
void set_torch_present() noexcept;

// Whether PyTorch's allocator made the call with this stack.
bool is_of_torch(std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
