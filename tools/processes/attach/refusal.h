// The errors of an attach that is refused.
#pragma once

#include <string>
#include <utility>

#include "tools/base/error.h"

namespace oomrec::tools::processes {

inline constexpr const char* kStartRecorded = "Start it with the recorder: oomrec run -- PROGRAM";

inline Error refusal(const std::string& what, std::string what_to_do) {
  return Error{Exit::bad_input, what, std::move(what_to_do)};
}

}  // namespace oomrec::tools::processes
