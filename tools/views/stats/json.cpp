#include <algorithm>
#include <string>
#include <vector>

#include "tools/recording/reading/devices.h"
#include "tools/sections/devices.h"
#include "tools/sections/holders.h"
#include "tools/views/stats/stats.h"

namespace oomrec::tools::views {
namespace {

Json functions_json(const std::vector<recording::FunctionFigures>& functions,
                    const recording::Locations& locations, std::size_t top) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(functions.size(), top); ++i) {
    const recording::Location& location = locations[functions[i].location];
    rows.push_back({
        {"function", text_or_null(location.function)},
        {"file", text_or_null(location.file)},
        {"line", number_or_null(location.line)},
        {"bytes", functions[i].bytes},
        {"count", functions[i].count},
    });
  }
  return rows;
}

Json devices_json(const bundles::Source& source) {
  Json rows = Json::array();
  for (const recording::DeviceFigures& device :
       recording::devices_of(*source.recording, source.failure()))
    rows.push_back(sections::device_json(device));
  return rows;
}

}  // namespace

Json stats_json(const recording::Statistics& statistics, const bundles::Source& source,
                std::size_t top) {
  Json sizes = Json::array();
  for (const recording::SizeBucket& bucket : statistics.sizes) {
    sizes.push_back({{"from", bucket.from},
                     {"to", bucket.to},
                     {"count", bucket.count},
                     {"bytes", bucket.bytes}});
  }
  Json apis = Json::object();
  for (const recording::ApiFigures& api : statistics.apis) {
    apis[std::string{name_of(api.api)}] = {{"count", api.count}, {"bytes", api.bytes}};
  }
  return {
      {"schema_version", 1},
      {"mode", name_of(source.recording->mode_now())},
      {"estimated", statistics.estimated},
      {"total_allocated_bytes", statistics.total_allocated_bytes},
      {"total_allocations", statistics.total_allocations},
      {"peak_bytes", statistics.peak_bytes},
      {"live_bytes", statistics.live_bytes},
      {"top_by_bytes", functions_json(statistics.by_bytes, *source.locations, top)},
      {"top_by_count", functions_json(statistics.by_count, *source.locations, top)},
      {"size_histogram", sizes},
      {"apis", apis},
      {"spaces", sections::spaces_json(*source.recording)},
      {"devices", devices_json(source)},
  };
}

}  // namespace oomrec::tools::views
