// A framework's own figures of its GPUs, for a process without hooks (dlopen mode), where they are
// the only source.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/device_layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A GPU, as the framework sees it.
struct FrameworkDevice {
  session::Vendor vendor;
  std::int32_t ordinal;
  std::string_view name;
  std::uint64_t total_bytes, free_bytes;
  std::uint64_t allocated_bytes, reserved_bytes;  // by the framework, in this process
};
void on_framework_device(InHook, const FrameworkDevice&) noexcept;

}  // namespace oomrec::recorder
