#include "tools/sections/devices.h"

#include <fmt/format.h>

#include "common/session/driver_text.h"
#include "common/text/device_text.h"
#include "tools/base/text.h"

namespace oomrec::tools::sections {
namespace {

std::string row(std::string_view name, const std::string& value, const std::string& detail = {}) {
  return fmt::format("    {:<33}{:>10}{}{}\n", name, value, detail.empty() ? "" : "  ", detail);
}

std::string held_detail(const recording::DeviceFigures& device) {
  if (device.pool_reserved_bytes == 0) return {};
  return fmt::format("pools reserve {}, {} of it in use", size_text(device.pool_reserved_bytes),
                     size_text(device.pool_used_bytes));
}

std::string torch_text(const recording::DeviceFigures::Torch& torch) {
  const double ratio = torch.fragmentation_ratio();
  std::string text = row("  of it PyTorch's tensors", size_text(torch.allocated_bytes),
                         fmt::format("inside {} reserved", size_text(torch.reserved_bytes)));
  text += row("  fragmentation", fmt::format("{:.2f}", ratio),
              std::string{text::fragmentation_word(static_cast<unsigned>(ratio * 100))});
  if (torch.largest_free_bytes)
    text += row("  largest free piece", size_text(*torch.largest_free_bytes));
  return text;
}

// The figures that the driver last reported.
std::string driver_figures_text(const recording::DeviceFigures& device) {
  if (!device.driver_sample) return "    no free-memory figure from the driver\n";
  const recording::DeviceFigures::DriverSample& sample = *device.driver_sample;
  return row("used by all", size_text(sample.total_bytes - sample.free_bytes),
             fmt::format("of {}, {:.1f} s before the recording ends", size_text(sample.total_bytes),
                         static_cast<double>(sample.age_ms) / 1000)) +
         row("used by others or by the runtime", size_text(device.others_bytes())) +
         row("free", size_text(sample.free_bytes));
}

Json torch_json(const recording::DeviceFigures::Torch& torch) {
  return {
      {"allocated_bytes", torch.allocated_bytes},
      {"reserved_bytes", torch.reserved_bytes},
      {"fragmentation_ratio", torch.fragmentation_ratio()},
      {"largest_free_bytes", torch.largest_free_bytes},
  };
}

}  // namespace

std::string device_text(const recording::DeviceFigures& device) {
  std::string text = fmt::format("  {}  {}{}\n", device.label, device.name,
                                 device.uuid.empty() ? "" : fmt::format(" ({})", device.uuid));
  text += row("held by this process", size_text(device.held_bytes), held_detail(device));
  if (device.torch) text += torch_text(*device.torch);
  if (device.peak_bytes > device.held_bytes) text += row("at most", size_text(device.peak_bytes));
  if (device.managed_bytes != 0)
    text += row("managed", size_text(device.managed_bytes), "moves between host and device");
  if (device.limit_bytes != 0) text += row("limit", size_text(device.limit_bytes), "--limit-gpu");
  return text + driver_figures_text(device);
}

Json device_json(const recording::DeviceFigures& device) {
  const auto& sample = device.driver_sample;
  return {
      {"device", device.label},
      {"vendor", device.vendor == session::Vendor::hip ? "hip" : "cuda"},
      {"ordinal", device.ordinal},
      {"uuid", text_or_null(device.uuid)},
      {"name", text_or_null(device.name)},
      {"limit_bytes", number_or_null(device.limit_bytes)},
      {"held_bytes", device.held_bytes},
      {"block_bytes", device.block_bytes},
      {"pool_used_bytes", device.pool_used_bytes},
      {"pool_reserved_bytes", device.pool_reserved_bytes},
      {"managed_bytes", device.managed_bytes},
      {"peak_bytes", device.peak_bytes},
      {"used_bytes", sample ? Json(sample->total_bytes - sample->free_bytes) : Json(nullptr)},
      {"free_bytes", sample ? Json(sample->free_bytes) : Json(nullptr)},
      {"total_bytes", sample ? Json(sample->total_bytes) : Json(nullptr)},
      {"age_ms", sample ? Json(sample->age_ms) : Json(nullptr)},
      {"others_bytes", sample ? Json(device.others_bytes()) : Json(nullptr)},
      {"torch", device.torch ? torch_json(*device.torch) : Json(nullptr)},
  };
}

namespace {

using session::Driver;
using session::Vendor;

std::string hooks_of(Vendor vendor, const Driver& driver) {
  char buffer[128];
  system::Text text{buffer};
  session::write_hooks(text, vendor, driver);
  return std::string{text.view()};
}

template <class Visit>
void for_each_loaded_driver(const recording::Recording& recording, Visit visit) {
  for (std::uint32_t i = 0; i < session::kVendors; ++i) {
    const Driver& driver = recording.header().drivers[i];
    if (session::was_found(driver)) visit(static_cast<Vendor>(i), driver);
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> driver_facts(
    const recording::Recording& recording) {
  std::vector<std::pair<std::string, std::string>> facts;
  for_each_loaded_driver(recording, [&](Vendor vendor, const Driver& driver) {
    facts.emplace_back(session::printed_name(vendor), hooks_of(vendor, driver));
  });
  return facts;
}

Json drivers_json(const recording::Recording& recording) {
  Json rows = Json::array();
  for_each_loaded_driver(recording, [&](Vendor vendor, const Driver& driver) {
    rows.push_back({
        {"vendor", vendor == Vendor::cuda ? "cuda" : "hip"},
        {"hooks", hooks_of(vendor, driver)},
        {"path", text_or_null(recording.text(driver.path))},
        {"version", driver.version},
        {"linked", driver.linked.load()},
        {"by_dlsym", driver.by_dlsym.load()},
        {"by_resolver", driver.by_resolver.load()},
        {"wrapped", driver.wrapped.load()},
    });
  });
  return rows;
}

}  // namespace oomrec::tools::sections
