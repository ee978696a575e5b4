// Whether PyTorch's allocator is in the process, and whether it made a call.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// PyTorch reports its memory to us. From now on a driver's failure under its allocator is
// pending until PyTorch reports the outcome.
void note_torch() noexcept;

// Whether PyTorch's allocator made the call with this stack.
bool is_of_torch(std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
