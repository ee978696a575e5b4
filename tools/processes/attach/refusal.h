// The errors of an attach that is refused.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <string>
#include <utility>

#include "tools/base/error.h"

namespace oomrec::tools::processes {

inline constexpr const char* kStartRecorded = "Start it with the recorder: oomrec run -- PROGRAM";

inline Error refusal(const std::string& what, std::string what_to_do) {
  return Error{Exit::bad_input, what, std::move(what_to_do)};
}

[[noreturn]] inline void throw_ended(pid_t pid) {
  throw refusal(fmt::format("process {} ended, or replaced its program, meanwhile", pid),
                "Nothing was left in it.");
}

}  // namespace oomrec::tools::processes
