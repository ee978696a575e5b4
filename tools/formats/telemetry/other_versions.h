// Converts telemetry records of other versions to version 2: of version 1, which had no
// schema_version and no fixed set of keys, and of 3 and 4, which Stormlog writes.
#pragma once

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// For each field, telemetry_fields.json lists its names in version 1, in the order to try them, and
// the default. Only a missing name gets the default; a value of the wrong type is an error. The
// result still has to be checked. Throws TelemetryProblem.
Json version_2_of(const Json& record);

// Whether `schema_version` is 3 or 4.
bool is_later_version(const Json& version);
// Such a record's session_id goes to its metadata, and some counters that are null count as 0. The
// result still has to be checked. Throws TelemetryProblem.
Json version_2_of_later(const Json& record);

// Whether a record of version 1 has the allocated bytes.
bool has_size(const Json& record);

}  // namespace oomrec::tools::formats
