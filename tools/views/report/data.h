// All that a report shows of a recording, as its page reads it.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

struct ReportData {
  std::string bytes;  // a zlib stream: see container.h
  std::vector<std::string>
      labels;  // of the program's own, those inside of others as "outer / inner"
};

// Cost: 100,000 stacks whose symbols are cached, about a second.
ReportData report_data(const bundles::Source& source);

// "train.py (pid 4711)", "train.py (4 ranks)".
std::string report_title(const bundles::Source& source);

// The name of the recorded program: of its script, where an interpreter runs one.
std::string program_name(const recording::Recording& recording);

}  // namespace oomrec::tools::views
