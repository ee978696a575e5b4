// --fail-above SIZE: a command whose answer is an exit code, too, for CI.
#pragma once

#include <cstdint>
#include <string>

#include "tools/base/arguments.h"

namespace oomrec::tools {

class FailAbove {
 public:
  void add_to(Arguments& arguments, const std::string& help);

  // After the options were parsed. Throws Error with bad_input for what is no size.
  void read();

  // Throws Error with check_failed where `bytes` of `what` ("has leaked") are above the size given.
  void check(std::uint64_t bytes, const std::string& what) const;

 private:
  std::string text_;
  std::uint64_t bytes_ = 0;
};

}  // namespace oomrec::tools
