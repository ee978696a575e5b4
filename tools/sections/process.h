// The recorded process and its recording, as text and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

// Rows of name and value: bundle, process, Python, trigger.
std::vector<std::pair<std::string, std::string>> process_facts(const bundles::Source& source);

Json process_json(const bundles::Source& source);
Json recording_json(const bundles::Source& source);

// ISO 8601 UTC. Of a running process now, which is when it is read; for another recording without a
// bundle, the time of its last tick.
std::string created_at(const bundles::Source& source);

// "recovered" → "recovered: the program kept running, …".
std::string outcome_sentence(const std::string& outcome);

}  // namespace oomrec::tools::sections
