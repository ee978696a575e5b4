// The data of a report, in the form that its page reads.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

struct ReportData {
  std::string bytes;                // a zlib stream: see container.h
  std::vector<std::string> labels;  // of the program; nested ones as "outer / inner"
};

// Cost: about a second for 100,000 stacks with cached symbols.
ReportData report_data(const bundles::Source& source);

// "train.py (pid 4711)", "train.py (4 ranks)".
std::string report_title(const bundles::Source& source);

// The name of the recorded program, or of the script that Python runs.
std::string program_name(const recording::Recording& recording);

// The part of a report in words and few figures: what happened, the process and the machine.

// The page's JSON, except for the members that refer to stacks.
Json report_facts(const bundles::Source& source, const bundles::Processes& related);

}  // namespace oomrec::tools::views
