// Prometheus' text format, version 0.0.4: what a scrape gets.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tools/service/fleet/process_registry.h"

namespace oomrec::tools::service {

inline constexpr std::string_view kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

// A label's value: \, " and line breaks are escaped; other control characters and what is no UTF-8
// are replaced.
std::string escaped_label(std::string_view value);

// All families, each with its HELP and TYPE, also those that have no sample yet. The counters of
// rows that are born since `last_scrape` are 0, whatever they have come to: who sees a series for
// the first time sees no increase in it. Nothing: all are as they are.
std::string exposition(std::map<SeriesRow, RowFigures> rows,
                       std::optional<Attendant::Clock::time_point> last_scrape = {});

}  // namespace oomrec::tools::service
