#include "tools/print/drivers.h"

#include "common/session/driver_text.h"

namespace oomrec::tools::print {
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

}  // namespace oomrec::tools::print
