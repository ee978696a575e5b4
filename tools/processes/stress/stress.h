// `oomrec stress`: allocates in steps, in the memory of the host or of a GPU, in a recorded
// child.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/session/vocabulary.h"

namespace oomrec::tools::processes {

// Allocates in steps up to a size, and prints the total: the work of the child of `oomrec stress`.
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

// `limit`: a size, or empty for the limits already in force. `child_words`: the command line that
// calls allocate_in_steps(plan), without the program. Returns the exit code. Throws Error with
// bad_input if nothing limits the memory: the machine itself would run out.
int run_stress(const StressPlan& plan, const std::string& limit,
               const std::vector<std::string>& child_words);

}  // namespace oomrec::tools::processes
