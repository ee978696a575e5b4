// Whose code a location is, for a report's page.
#pragma once

#include <cstdint>
#include <string>

#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::views {

// Bits of the page's array `place_kind`.
enum LocationKind : std::uint8_t {
  kKindMask = 3,  // Location::Kind
  kInlined = 4,
  kInterpreter = 8,
  kGuessed = 16,
  kAllocator = 32,  // allocators, the C and C++ libraries, drivers: they allocate for their callers
  kImport = 64,     // Python's import machinery
  kOwn = 128,       // the program's own code
};

std::uint8_t kind_bits(recording::LocationId id, const recording::Locations& locations);

// The function, or "libfoo.so+0x1234" without a name.
std::string name_of_location(const recording::Location& location,
                             const recording::Locations& locations);

}  // namespace oomrec::tools::views
