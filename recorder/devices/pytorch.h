// Whether PyTorch's allocator is in the process, and whether it made a call.
#pragma once

#include <cstdint>

namespace oomrec::recorder {

// Its reporters reach us: from now on a driver's failure of its allocator is told when it says what
// became of it.
void note_torch() noexcept;

// Whether PyTorch's allocator has made the call whose stack this is.
bool is_of_torch(std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
