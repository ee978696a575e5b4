// Durations as text.
#pragma once

#include <string>

namespace oomrec::tools::print {

// "0.4 s", "19.6 s", "3 min 20 s", "2 h 36 min", "5 days 3 h", "more than 10 years".
std::string duration_text(double seconds);

}  // namespace oomrec::tools::print
