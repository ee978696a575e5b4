// PyTorch's own blocks, in a space above that of the driver: what is allocated there lies inside
// what the driver gave, and the two are never added up. Sampled like the heap, its totals exact.
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether the blocks of its allocator on the CPU are wanted, too.
bool wants_torch_on_cpu() noexcept;

// What its allocator tells of each block: `change` bytes more, or less, at `address`, and what it
// has allocated and reserved on the device since.
struct TorchReport {
  Api api;
  std::uint64_t address;
  std::int64_t change;
  std::uint64_t allocated_bytes;
  std::uint64_t reserved_bytes;
  std::uint32_t device;  // entry; 0: the CPU, or not known whose
};
void on_torch_memory(InHook, const TorchReport&) noexcept;
// It gives up: `change` bytes cannot be had of a GPU.
void on_torch_failure(InHook, const TorchReport&) noexcept;

}  // namespace oomrec::recorder
