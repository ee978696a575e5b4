// Writes metrics in Prometheus' text format, version 0.0.4.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tools/service/fleet/figures.h"
#include "tools/service/fleet/process_registry.h"
#include "tools/service/fleet/signature_counts.h"

namespace oomrec::tools::service {

inline constexpr std::string_view kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

// A label's value. Escapes \, " and line breaks; replaces other control characters and invalid
// UTF-8.
std::string escaped_label(std::string_view value);

// All families with their HELP and TYPE, even those without a sample. The counters of rows first
// seen after `last_scrape` are 0: Prometheus sees no increase in the first sample of a series.
// Without `last_scrape`, all counters have their values. `shipped`: null without --ship.
// `signatures`: of deaths; null: not counted.
std::string exposition(std::map<SeriesRow, RowFigures> rows,
                       std::optional<PollClient::Clock::time_point> last_scrape = {},
                       const ShipFigures* shipped = nullptr,
                       const std::map<std::string, SignatureCounts::Count>* signatures = nullptr);

}  // namespace oomrec::tools::service
