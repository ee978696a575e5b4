// "device" and "device_evidence" of metadata.json's request: a GPU, and its figures at the failure.
#pragma once

#include <algorithm>
#include <array>

#include "common/facts/describe.h"
#include "common/session/device_layout.h"
#include "common/text/device_text.h"

namespace oomrec::facts {

inline constexpr auto kVendors = std::to_array<std::string_view>({"cuda", "hip"});

template <>
struct Section<session::Device> {
  static constexpr std::string_view key = "device";
  static constexpr std::string_view meaning = "the GPU; `null` for the host";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& device) {
    char buffer[48];
    text::Text uuid{buffer};
    text::add_uuid(uuid, device);
    v.field("kind", named(device.vendor, kVendors), "its driver");
    v.field("id", device.ordinal, "the driver's number, which `CUDA_VISIBLE_DEVICES` changes");
    v.field("uuid", uuid.view(), "identifies the device: `GPU-…`");
    v.field("name", Name{device.name}, "as the driver names it");
  }
};

template <>
struct Section<session::DeviceEvidence> {
  static constexpr std::string_view key = "device_evidence";
  static constexpr std::string_view meaning =
      "the GPU's figures when the request failed; `null` for the host";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& at) {
    const bool polled = at.total_bytes != 0;
    const bool torch = at.torch_reserved_bytes != 0;
    v.field("total_bytes", known_if(polled, at.total_bytes), "of the device, by its driver");
    v.field("free_bytes", known_if(polled, at.free_bytes), "by its driver");
    v.field("used_bytes",
            known_if(polled, at.total_bytes - std::min(at.total_bytes, at.free_bytes)),
            "total − free");
    v.field("age_ms", known_if(polled, at.polled_age_ms),
            "how long before the failure the driver reported total and free bytes");
    v.field("counted_bytes", at.counted_bytes,
            "this process' physical memory: each byte once, pools with all that they reserve");
    v.field("managed_bytes", at.managed_bytes, "its managed memory");
    v.field("others_bytes", known_if(polled, text::used_by_others(at)),
            "used − counted − managed, at least 0");
    v.field("limit_bytes", known_if(at.limit_bytes != 0, at.limit_bytes), "`--limit-gpu`");
    v.field("pool_used_bytes", at.pool_used_bytes, "of memory pools: in use");
    v.field("pool_reserved_bytes", at.pool_reserved_bytes, "of memory pools: all");
    v.field("torch_allocated_bytes", known_if(torch, at.torch_allocated_bytes),
            "what PyTorch's allocator has handed out");
    v.field("torch_reserved_bytes", known_if(torch, at.torch_reserved_bytes),
            "what it has of the driver");
    v.field("torch_largest_free_bytes",
            known_if(torch && at.torch_largest_free_bytes != session::kUnlimited,
                     at.torch_largest_free_bytes),
            "its largest free piece");
  }
};

}  // namespace oomrec::facts
