// What a report's page must know of a place beside its name: whose code it is.
#pragma once

#include <cstdint>
#include <string>

#include "tools/recording/symbolize/places.h"

namespace oomrec::tools::views {

// Bits of the page's array `place_kind`.
enum PlaceKind : std::uint8_t {
  kKindMask = 3,  // Place::Kind
  kInlined = 4,
  kInterpreter = 8,
  kGuessed = 16,
  kAllocator = 32,  // of allocators, the C and C++ libraries, drivers: they ask for others
  kImport = 64,     // Python's import machinery
  kOwn = 128,       // the program's own
};

std::uint8_t kind_bits(recording::PlaceId id, const recording::Places& places);

// The function, or what stands for one: "libfoo.so+0x1234".
std::string name_of_place(const recording::Place& place, const recording::Places& places);

}  // namespace oomrec::tools::views
