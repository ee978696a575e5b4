// The figures of a row. Each has a column on the screen, a key in JSON and a value to sort by.
#pragma once

#include <span>
#include <string_view>

#include "tools/base/json.h"
#include "tools/views/screen/picture.h"
#include "tools/views/top/table.h"

namespace oomrec::tools::views {

struct Figure {
  SortBy sort;
  std::size_t width;         // of its column
  std::size_t from_columns;  // narrower screens leave it out
  std::string_view key;      // of a row in JSON
  double (*sort_value)(const Row&);
  Span (*cell)(const Row&);
  Json (*json)(const Row&);
};

// In the order of SortBy and of the columns.
std::span<const Figure> figures();

}  // namespace oomrec::tools::views
