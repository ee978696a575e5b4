// A stack as people read it, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/recording/symbolize/places.h"
#include "tools/recording/symbolize/source_lines.h"

namespace oomrec::tools::recording {

struct StackStyle {
  const Terminal& terminal;
  std::size_t indent = 2;
  bool full = false;  // every frame; else those worth a line (shorten.h)
  // The source below the innermost line of the program's own; below every frame with `full`.
  SourceLines* lines = nullptr;  // nullptr: below none
};

// One frame: "train.py:31 make_batch", "PyArray_NewFromDescr  ctors.c:1045", "libfoo.so+0x1234".
std::string place_text(const Place& place, const Places& places);

// A stack, innermost first, one line each.
std::string stack_text(const std::vector<PlaceId>& stack, const Places& places,
                       const StackStyle& style);

// Array of FRAME (docs/json.md).
Json stack_json(const std::vector<PlaceId>& stack, const Places& places);

}  // namespace oomrec::tools::recording
