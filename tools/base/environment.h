// Variables of this process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace oomrec::tools {

// Empty if it is not set.
inline std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace oomrec::tools
