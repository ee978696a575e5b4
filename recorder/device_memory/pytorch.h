// What frameworks say of their memory on GPUs: PyTorch's own blocks, in a space above the driver's;
// and a framework's figures where there are no hooks.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/device_layout.h"
#include "common/session/functions.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// PyTorch's blocks lie inside blocks of the driver, so the two are never added up. Sampled like the
// heap, with exact totals.
//
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

// A GPU, as the framework sees it: for a process without hooks (dlopen mode), where these figures
// are the only source.
struct FrameworkDevice {
  session::Vendor vendor;
  std::int32_t ordinal;
  std::string_view name;
  std::uint64_t total_bytes, free_bytes;
  std::uint64_t allocated_bytes, reserved_bytes;  // by the framework, in this process
};
void on_framework_device(InHook, const FrameworkDevice&) noexcept;

}  // namespace oomrec::recorder
