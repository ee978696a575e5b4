// Records of telemetry version 1, which had no schema_version and no fixed set of keys, as
// version 2.
#pragma once

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// telemetry_fields.json says for each field under which names version 1 kept it, in which order
// they are tried, and what stands there where there is none of them. A value of a wrong type is an
// error: only a missing name has a default. The result is not checked yet. Throws TelemetryProblem.
Json version_2_of(const Json& record);

// Whether a record of version 1 says how much is allocated.
bool has_size(const Json& record);

}  // namespace oomrec::tools::formats
