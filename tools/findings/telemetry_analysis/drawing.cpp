// The analysis as input for tools/python/oomrec/_impl/draw.py.
#include <algorithm>

#include "tools/base/text.h"
#include "tools/findings/telemetry_analysis/analysis.h"

namespace oomrec::tools::findings {
namespace {

constexpr std::size_t kMostRows = 20;      // of the heat map and of the bars
constexpr std::size_t kMostPoints = 2000;  // of a curve: more than a page has columns

// Evenly thinned indexes of `count` points, always with the last one.
std::vector<std::size_t> thinned_indexes(std::size_t count) {
  std::vector<std::size_t> indexes;
  const std::size_t every = std::max<std::size_t>(1, (count + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = 0; i < count; i += every) indexes.push_back(i);
  if (!indexes.empty() && indexes.back() != count - 1) indexes.push_back(count - 1);
  return indexes;
}

Json timeline_json(const Stream& stream, const StreamFindings& found) {
  Json seconds = Json::array();
  Json allocated = Json::array();
  Json reserved = Json::array();
  Json used = Json::array();
  bool has_reserved = false;
  for (const std::size_t i : thinned_indexes(found.held.size())) {
    const HeldSample& sample = found.held[i];
    seconds.push_back(sample.seconds);
    allocated.push_back(sample.allocated);
    reserved.push_back(sample.reserved);
    used.push_back(sample.used);
    has_reserved = has_reserved || sample.reserved != sample.allocated;
  }
  Json curves = Json::array({{{"name", "allocated"}, {"bytes", std::move(allocated)}}});
  if (has_reserved) curves.push_back({{"name", "reserved"}, {"bytes", std::move(reserved)}});
  curves.push_back(
      {{"name", stream.device_id < 0 ? "resident" : "device used"}, {"bytes", std::move(used)}});
  return {{"name", printable(stream.name())},
          {"seconds", std::move(seconds)},
          {"curves", std::move(curves)}};
}

// A recording's functions over its checkpoints.
Json heat_rows(const FunctionCurves& curves) {
  Json rows = Json::array();
  for (const FunctionCurve& curve : curves.curves) {
    if (rows.size() == kMostRows || curve.peak() <= 0) break;
    Json seconds = Json::array();
    for (const double time : curves.times) seconds.push_back(time - curves.times.front());
    rows.push_back(
        {{"name", printable(curve.name)}, {"seconds", std::move(seconds)}, {"bytes", curve.bytes}});
  }
  return rows;
}

// Telemetry's processes or ranks over their samples.
Json heat_rows(const std::vector<Stream>& streams, const std::vector<StreamFindings>& findings) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kMostRows, streams.size()); ++i) {
    Json seconds = Json::array();
    Json bytes = Json::array();
    for (const std::size_t at : thinned_indexes(findings[i].allocated.size())) {
      seconds.push_back(findings[i].allocated.seconds[at]);
      bytes.push_back(findings[i].allocated.values[at]);
    }
    rows.push_back({{"name", printable(streams[i].name())},
                    {"seconds", std::move(seconds)},
                    {"bytes", std::move(bytes)}});
  }
  return rows;
}

}  // namespace

Json Analysis::drawing() const {
  Json timelines = Json::array();
  for (std::size_t i = 0; i < streams_.size(); ++i)
    timelines.push_back(timeline_json(streams_[i], findings_[i]));
  std::vector<formats::FunctionCall> calls = input_.calls;
  std::stable_sort(calls.begin(), calls.end(),
                   [](const formats::FunctionCall& a, const formats::FunctionCall& b) {
                     return a.peak_mb > b.peak_mb;
                   });
  Json functions = Json::array();
  for (std::size_t i = 0; i < std::min(kMostRows, calls.size()); ++i)
    functions.push_back({{"name", printable(calls[i].name)},
                         {"peak_bytes", calls[i].peak_mb * formats::kMegabyte},
                         {"end_bytes", calls[i].end_mb * formats::kMegabyte}});
  return {{"title", printable(input_.path)},
          {"timelines", std::move(timelines)},
          {"heat", input_.curves.curves.empty() ? heat_rows(streams_, findings_)
                                                : heat_rows(input_.curves)},
          {"functions", std::move(functions)}};
}

}  // namespace oomrec::tools::findings
