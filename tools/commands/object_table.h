// Prints the Python objects that a process had when it was attached to, by type.
#pragma once

#include "tools/base/json.h"
#include "tools/recording/reading/object_counts.h"

namespace oomrec::tools::commands {

void print_objects(const recording::ObjectCounts& counts);

Json objects_json(const recording::ObjectCounts& counts);

}  // namespace oomrec::tools::commands
