// The text of the live view's rows.
#pragma once

#include <string>

#include "tools/views/top/table.h"

namespace oomrec::tools::views {

// "train.py:42 make_batch ← train.py:60 main", "make_batch  train.py", "/srv/app/train.py".
std::string row_text(const Row& row, By by, const Table& table);

// "+1.2 MiB/s", "-300 B/s"; empty below 1 B/s.
std::string growth_text(double bytes_a_second);

}  // namespace oomrec::tools::views
