// Parses --device: a number, "cuda:0", "cpu"; the names are those of GPU Memory Profiler.
#pragma once

#include <string>

namespace oomrec::tools::processes {

struct DeviceChoice {
  enum class Kind { any, host, gpu };
  Kind kind = Kind::any;  // any: the first relevant GPU, else the host
  int ordinal = 0;        // of a GPU

  // Throws Error with bad_input if the word is not a device on Linux.
  static DeviceChoice of(const std::string& word);
};

}  // namespace oomrec::tools::processes
