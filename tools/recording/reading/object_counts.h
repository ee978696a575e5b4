// The objects that Python's garbage collector tracked when the process was attached to, by type, as
// the recorder writes them down (shim/attach/object_counts.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oomrec::tools::recording {

struct ObjectCounts {
  struct Row {
    std::uint64_t count = 0, bytes = 0;
    std::string type;  // "dict", "collections.OrderedDict"
  };
  std::uint64_t objects = 0, bytes = 0;  // of all types; shallow: without what the objects refer to
  std::uint64_t types = 0;
  std::uint64_t interpreters = 0;  // only the main one's objects are counted
  std::uint64_t took_ns = 0;       // for so long the program ran no Python code
  bool is_partial = false;         // it took too long, and was ended
  std::vector<Row> rows;           // the largest, first
};

// `text`: "OBJECTS BYTES TYPES INTERPRETERS NANOSECONDS PARTIAL", then "COUNT BYTES TYPE" in each
// line.
ObjectCounts object_counts_of(const std::string& text);

}  // namespace oomrec::tools::recording
