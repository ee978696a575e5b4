// PyTorch's own blocks, in a space above the driver's: they lie inside blocks of the driver, so the
// two are never added up. Sampled like the heap, with exact totals.
#pragma once

#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether to record blocks of its CPU allocator, too (--torch-cpu).
bool wants_torch_on_cpu() noexcept;

// One report of its allocator: `change` bytes more, or less, at `address`, and its totals on the
// device.
struct TorchReport {
  Api api;
  std::uint64_t address;
  std::int64_t change;
  std::uint64_t allocated_bytes;
  std::uint64_t reserved_bytes;
  std::uint32_t device;  // entry; 0: the CPU, or not known whose
};
void on_torch_memory(InHook, const TorchReport&) noexcept;
// It gives up: a GPU has no `change` bytes left for it.
void on_torch_failure(InHook, const TorchReport&) noexcept;

}  // namespace oomrec::recorder
