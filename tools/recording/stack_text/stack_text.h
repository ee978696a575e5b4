// A stack as text and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/recording/symbolize/locations.h"
#include "tools/recording/symbolize/source_lines.h"

namespace oomrec::tools::recording {

struct StackStyle {
  const Terminal& terminal;
  std::size_t indent = 2;
  bool full = false;  // every frame; else a selection (frame_selection.h)
  // Shows the source line below the innermost line of the program's own code; with `full`, below
  // every frame.
  SourceLines* lines = nullptr;  // nullptr: no source lines
};

inline constexpr std::size_t kAnyWidth = SIZE_MAX;

// One frame: "train.py:31 make_batch", "PyArray_NewFromDescr  ctors.c:1045", "libfoo.so+0x1234".
// Names of functions and files are shortened to fit `columns`, as far as that leaves them readable.
std::string location_text(const Location& location, const Locations& locations,
                          std::size_t columns = kAnyWidth);

// What a stack, innermost first, does inside of its innermost line of Python: "in native code:
// array_empty … default_malloc (5 functions)". Empty: nothing of its own, or there is no such line.
std::string native_part_text(const std::vector<LocationId>& stack, const Locations& locations,
                             std::size_t columns = kAnyWidth);

// A stack, innermost first, one line each. Unless `full`, the native functions inside of the
// innermost line of Python are one line below it.
std::string stack_text(const std::vector<LocationId>& stack, const Locations& locations,
                       const StackStyle& style);

// Array of FRAME (docs/json.md).
Json stack_json(const std::vector<LocationId>& stack, const Locations& locations);

}  // namespace oomrec::tools::recording
