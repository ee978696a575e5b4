// Allocates in steps up to a size, and prints the total: the work of the child of `oomrec stress`.
#pragma once

#include <cstdint>
#include <string>

namespace oomrec::tools::processes {

enum class Pages { touched, untouched };  // untouched: allocated without using RAM

struct StressPlan {
  std::string space;    // "heap", "map", "cuda", "hip"
  unsigned device = 0;  // for cuda and hip
  std::uint64_t max_bytes = 0, step_bytes = 0;
  double hold_s = 0;
  Pages pages = Pages::touched;

  bool is_on_device() const { return space == "cuda" || space == "hip"; }
};

// False: an allocation failed before the maximum. Throws Error if there is no such device.
bool allocate_in_steps(const StressPlan& plan);

}  // namespace oomrec::tools::processes
