// The figures of a row. Each has a column on the screen, a key in JSON and a value to sort by.
#pragma once

#include <span>
#include <string>
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

// The text of the live view's rows.

// "train.py:42 make_batch ← train.py:60 main", "make_batch  train.py", "/srv/app/train.py".
std::string row_text(const Row& row, By by, const Table& table);

// "+1.2 MiB/s", "-300 B/s"; empty below 1 B/s.
std::string growth_text(double bytes_a_second);

}  // namespace oomrec::tools::views
