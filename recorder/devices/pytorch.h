// Whether PyTorch's allocator is in the process, and whether it made a call.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// PyTorch's reporters call us. From now on a driver's failure under its allocator is provisional,
// until PyTorch says what became of it.
void note_torch() noexcept;

// Whether PyTorch's allocator has made the call whose stack this is.
bool is_of_torch(std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
