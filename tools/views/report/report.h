// The HTML report of a bundle or of a redacted copy.
#pragma once

#include <string>

#include "tools/bundles/store/source.h"
#include "tools/views/report/page.h"

namespace oomrec::tools::views {

// Throws Error with nothing_found if nothing was allocated under the label.
std::string report_of(const bundles::Source& source, const InitialView& initial_view);

// Reads a redacted copy of the bundle, so the page cannot contain anything else.
std::string redacted_report_of(const bundles::Source& source, const InitialView& initial_view);

}  // namespace oomrec::tools::views
