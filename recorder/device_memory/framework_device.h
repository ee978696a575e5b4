// A recording without events: of a process whose calls pass no hook. What is known is what the
// kernel says of it, and what it says itself.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/devices.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A GPU, as a framework sees it.
struct FrameworkDevice {
  session::Vendor vendor;
  std::int32_t ordinal;
  std::string_view name;
  std::uint64_t total_bytes, free_bytes;
  std::uint64_t allocated_bytes, reserved_bytes;  // by the framework, in this process
};
void on_framework_device(InHook, const FrameworkDevice&) noexcept;

}  // namespace oomrec::recorder
