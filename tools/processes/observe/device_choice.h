// Which device is meant by --device: a number, "cuda:0", "cpu"; as GPU Memory Profiler has it.
#pragma once

#include <string>

namespace oomrec::tools::processes {

struct DeviceChoice {
  enum class Kind { any, host, gpu };
  Kind kind = Kind::any;  // not given: a GPU where there is one that matters, else the host
  int ordinal = 0;        // of a GPU

  // Throws Error with bad_input for a word that is no device on Linux.
  static DeviceChoice of(const std::string& word);
};

}  // namespace oomrec::tools::processes
