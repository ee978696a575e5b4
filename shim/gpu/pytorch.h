// PyTorch's reports of its own blocks.
#pragma once

#include <cstdint>

namespace oomrec::shim::gpu {

// Call after a library was closed: it may have been libc10.
void reset_torch_if_closed() noexcept;

// For a program that was attached to: calls `visit` for each of libc10's functions that we hook,
// with its address, if libc10 is loaded.
void visit_torch(void (*visit)(const char* name, const void* own)) noexcept;
// A number that changes when libc10 comes or goes.
std::uint64_t loaded_torch() noexcept;

}  // namespace oomrec::shim::gpu
