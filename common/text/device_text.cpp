#include "common/text/device_text.h"

#include <cstring>

namespace oomrec::text {

using session::Device;
using session::DeviceEvidence;
using session::Vendor;

namespace {

std::uint64_t saturating_subtract(std::uint64_t whole, std::uint64_t part) noexcept {
  return whole > part ? whole - part : 0;
}

}  // namespace

bool read_device(const session::View& view, std::uint32_t entry, Device& device) noexcept {
  if (entry != 0 && view.read(session::TableId::devices, entry, device)) return true;
  std::memset(static_cast<void*>(&device), 0, sizeof device);
  return false;
}

std::string_view vendor_name(const Device& device) noexcept {
  return vendor_of(device) == Vendor::cuda ? "cuda" : "hip";
}

std::string_view name_of(const Device& device) noexcept {
  return {device.name, strnlen(device.name, sizeof device.name)};
}

void add_device(Text& text, const Device& device) noexcept {
  text.add(vendor_name(device)).add(':').signed_number(device.ordinal);
  const std::string_view name = name_of(device);
  if (!name.empty()) text.add(" (").add(name).add(')');
}

void add_uuid(Text& text, const Device& device) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text.add("GPU-");
  for (std::size_t i = 0; i < sizeof device.uuid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.add('-');
    text.add(kDigits[device.uuid[i] >> 4]).add(kDigits[device.uuid[i] & 15]);
  }
}

std::uint64_t used_by_others(const DeviceEvidence& at) noexcept {
  return saturating_subtract(
      saturating_subtract(saturating_subtract(at.total_bytes, at.free_bytes), at.counted_bytes),
      at.managed_bytes);
}

std::uint64_t free_in_torch(const DeviceEvidence& at) noexcept {
  return saturating_subtract(at.torch_reserved_bytes, at.torch_allocated_bytes);
}

std::uint64_t free_in_pools(const DeviceEvidence& at) noexcept {
  return saturating_subtract(at.pool_reserved_bytes, at.pool_used_bytes);
}

void add_state(Text& text, const DeviceEvidence& at) noexcept {
  if (at.device == 0) return void(text.add("its device is not on record"));
  if (at.total_bytes != 0)
    text.size(at.free_bytes).add(" of ").size(at.total_bytes).add(" were free; ");
  text.add("this process holds ").size(at.counted_bytes);
  if (at.total_bytes != 0) text.add(", others or the runtime ").size(used_by_others(at));
}

std::string_view fragmentation_word(unsigned percent) noexcept {
  if (percent >= kBadlyFragmentedPercent) return "critical";
  return percent >= kFragmentedPercent ? "warning" : std::string_view{};
}

unsigned fragmentation_percent(std::uint64_t free_bytes, std::uint64_t reserved) noexcept {
  if (reserved == 0) return 0;
  return static_cast<unsigned>(static_cast<double>(free_bytes) / static_cast<double>(reserved) *
                               100);
}

// CUDA: 1000 × major + 10 × minor; HIP: 10,000,000 × major + 100,000 × minor +
// patch.
void add_version(Text& text, Vendor vendor, std::uint32_t version) noexcept {
  if (vendor == Vendor::cuda) {
    text.number(version / 1000).add('.').number(version % 1000 / 10);
  } else {
    text.number(version / 10'000'000).add('.').number(version % 10'000'000 / 100'000);
    text.add('.').number(version % 100'000);
  }
}

std::string_view driver_versions(const session::View& view, std::span<char> buffer) noexcept {
  Text text{buffer.data(), buffer.size()};
  for (const Vendor vendor : {Vendor::cuda, Vendor::hip}) {
    const std::uint32_t version = view.header().drivers[static_cast<std::size_t>(vendor)].version;
    if (version == 0) continue;
    if (!text.view().empty()) text.add(", ");
    text.add(vendor == Vendor::cuda ? "CUDA " : "HIP ");
    add_version(text, vendor, version);
  }
  return text.view();
}

}  // namespace oomrec::text
