// The largest Python arrays and tensors and their referrers, as the Python package wrote them into
// a bundle.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

// objects.json in the form that docs/json.md specifies; null without that file. The file is not
// trusted: members of a wrong type are left out.
Json python_objects_json(const bundles::Source&);

// The five largest. Empty without objects.
std::string python_objects_text(const bundles::Source&, const Terminal&);

}  // namespace oomrec::tools::sections
