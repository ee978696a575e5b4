// TelemetryEvent v1, which had no version and no fixed set of keys, as version 2.
#pragma once

#include "tools/formats/telemetry/event.h"

namespace oomrec::tools::formats {

// Keys that it does not have get what version 2 says of them: pid −1, host "unknown", device −1,
// nothing of the device known but what is allocated. Keys metadata_X become members of the
// metadata. Throws std::invalid_argument where there is no time.
TelemetryEvent event_of_version_1(const Json& record);

// A number, or a text that is one, as tables have it.
std::optional<double> number_in(const Json& record, std::string_view key);

}  // namespace oomrec::tools::formats
