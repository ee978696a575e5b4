// Converts telemetry records of version 1, which had no schema_version and no fixed set of keys, to
// version 2.
#pragma once

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// For each field, telemetry_fields.json lists its names in version 1, in the order to try them, and
// the default. Only a missing name gets the default; a value of the wrong type is an error. The
// result still has to be checked. Throws TelemetryProblem.
Json version_2_of(const Json& record);

// Whether a record of version 1 has the allocated bytes.
bool has_size(const Json& record);

}  // namespace oomrec::tools::formats
