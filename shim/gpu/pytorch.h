// PyTorch's reports of its own blocks.
#pragma once

namespace oomrec::shim::gpu {

// Call after a library was closed: it may have been libc10.
void reset_torch_if_closed() noexcept;

}  // namespace oomrec::shim::gpu
