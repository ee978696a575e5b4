// PyTorch's reports of its own blocks (torch.cpp).
#pragma once

namespace oomrec::shim::gpu {

// A library was closed: perhaps it was libc10.
void forget_torch_if_closed() noexcept;

}  // namespace oomrec::shim::gpu
