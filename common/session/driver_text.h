// Describes how a program calls a GPU's driver, for `oomrec info` and for pages about a recording.
#pragma once

#include "common/session/device_layout.h"
#include "common/system/text.h"

namespace oomrec::session {

constexpr std::string_view printed_name(Vendor vendor) noexcept {
  return vendor == Vendor::cuda ? "CUDA" : "HIP";
}

// The driver's functions whose calls reach our wrappers.
inline u32 hooked_names(const Driver& driver) noexcept {
  return driver.linked + driver.by_dlsym + driver.by_resolver;
}

inline bool was_found(const Driver& driver) noexcept {
  return driver.path != 0 || hooked_names(driver) != 0;
}

// "hooked through dlsym and cuGetProcAddress; 31 names wrapped".
inline void write_hooks(system::Text& text, Vendor vendor, const Driver& driver) noexcept {
  if (!was_found(driver)) {
    text << "no driver so far; found if it is loaded later";
    return;
  }
  if (hooked_names(driver) == 0) {
    text << "a driver is loaded; none of its functions was called or looked up so far";
    return;
  }
  const char* between = "hooked through ";
  const auto add_if = [&](u32 count, std::string_view way) noexcept {
    if (count == 0) return;
    text << between << way;
    between = " and ";
  };
  add_if(driver.linked, "links");
  add_if(driver.by_dlsym, "dlsym");
  add_if(driver.by_resolver, vendor == Vendor::cuda ? "cuGetProcAddress" : "hipGetProcAddress");
  text << "; ";
  text.number(hooked_names(driver))
      << (hooked_names(driver) == 1 ? " name" : " names") << " wrapped";
}

}  // namespace oomrec::session
