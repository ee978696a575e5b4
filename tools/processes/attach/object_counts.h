// The objects that Python's garbage collector tracks in an attached process, by type.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

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

// Throws Error: it is not attached to, it is not Python, or its main thread runs no Python code
// now.
ObjectCounts count_objects(pid_t pid);

}  // namespace oomrec::tools::processes
