// Looks up variables where getenv may not be used: before libc's constructors, in other processes'.
#pragma once

#include <string_view>

namespace oomrec::recorder {

// The value of `name`; empty where it is not set. A view of the environment itself.
inline std::string_view variable(const char* const* environment, std::string_view name) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

}  // namespace oomrec::recorder
