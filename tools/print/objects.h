// What the Python package put into a bundle: the largest arrays and tensors, and who refers to
// them.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// objects.json, in the shape that docs/json.md has; null where there is none. The file may hold
// anything: what is not of its type is left out.
Json python_objects_json(const bundles::Source&);

// The five largest; empty where there are none.
std::string python_objects_text(const Json& objects, const Terminal&);

}  // namespace oomrec::tools::print
