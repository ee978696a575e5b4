// Looks up variables where getenv cannot: before libc's constructors, and in other processes'
// environments.
#pragma once

#include <string_view>

namespace oomrec::recorder {

// The value of `name`, as a view of the environment itself; empty: not set.
inline std::string_view variable(const char* const* environment, std::string_view name) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

}  // namespace oomrec::recorder
