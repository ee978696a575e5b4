// Text of a GPU and its figures, for verdicts, the report and the bundle's files.
//
// An unknown device is "cuda", one without a name "cuda:0". Reads only the session.
#pragma once

#include <span>
#include <string_view>

#include "common/session/view.h"
#include "common/text/text.h"

namespace oomrec::text {

// Reads an entry of `devices`; false: no such entry, and `device` is all zero.
bool read_device(const session::View&, std::uint32_t entry, session::Device& device) noexcept;

inline session::Vendor vendor_of(const session::Device& device) noexcept {
  return device.vendor == 0 ? session::Vendor::cuda : session::Vendor::hip;
}
std::string_view vendor_name(const session::Device&) noexcept;  // "cuda", "hip"
std::string_view name_of(const session::Device&) noexcept;

// "cuda:0 (NVIDIA H100)"
void add_device(Text&, const session::Device&) noexcept;
// "GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
void add_uuid(Text&, const session::Device&) noexcept;
// Memory used by other processes, or by the runtime and the driver for this process. Never below
// zero, although managed memory may be elsewhere.
std::uint64_t used_by_others(const session::DeviceEvidence&) noexcept;

// Free memory inside PyTorch's reserve, and inside memory pools.
std::uint64_t free_in_torch(const session::DeviceEvidence&) noexcept;
std::uint64_t free_in_pools(const session::DeviceEvidence&) noexcept;

// "410.2 MiB of 80.0 GiB were free; this process holds 70.1 GiB, others or the runtime 9.5 GiB"
void add_state(Text&, const session::DeviceEvidence&) noexcept;

// "warning" from 0.3 on, "critical" from 0.5; empty below.
inline constexpr unsigned kFragmentedPercent = 30, kBadlyFragmentedPercent = 50;
std::string_view fragmentation_word(unsigned percent) noexcept;
unsigned fragmentation_percent(std::uint64_t free_bytes, std::uint64_t reserved) noexcept;

// "13.5", "6.2.41134"; "CUDA 13.5" of the drivers in use.
void add_version(Text&, session::Vendor, std::uint32_t version) noexcept;
std::string_view driver_versions(const session::View&, std::span<char> buffer) noexcept;

}  // namespace oomrec::text
