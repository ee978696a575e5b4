// --fail-above SIZE: an exit code for CI.
#pragma once

#include <cstdint>
#include <string>

#include "tools/base/arguments.h"

namespace oomrec::tools {

class FailAbove {
 public:
  void add_to(Arguments& arguments, const std::string& help);

  // After the options are parsed. Throws Error with bad_input if the value is not a size.
  void read();

  // Throws Error with check_failed if `bytes` exceed the given size. `what`: "leaked".
  void check(std::uint64_t bytes, const std::string& what) const;

 private:
  std::string text_;
  std::uint64_t bytes_ = 0;
};

}  // namespace oomrec::tools
