#include "tools/findings/fragmentation/figures.h"

#include "tools/recording/live/processes.h"

namespace oomrec::tools::findings {
namespace {

MapFigures map_of(const recording::Recording& recording, const Json& environment) {
  MapFigures figures;
  const recording::SpaceTotals totals = recording.totals(Space::map);
  figures.live_bytes = totals.live_bytes;
  figures.live_count = totals.live_count;
  figures.reserved_bytes =
      recording.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
  const Json& rollup = member(environment, "smaps_rollup");
  figures.anonymous_bytes = number_of(rollup, "Anonymous");
  figures.huge_page_bytes = number_of(rollup, "AnonHugePages");
  figures.swapped_bytes = number_of(rollup, "Swap");
  return figures;
}

bool contains(const Json& variables, std::string_view name, std::string_view word) {
  const auto value = text_of(variables, name);
  return value && value->find(word) != std::string::npos;
}

}  // namespace

Fragmentation fragmentation_of(const bundles::Source& source) {
  const Json environment =
      source.bundle.empty() ? Json::object() : read_json(source.bundle, "environment.json");
  const Json& variables = member(environment, "environment");
  const recording::Recording& recording = *source.recording;
  Fragmentation figures;
  figures.rss_bytes =
      number_of(member(environment, "smaps_rollup"), "Rss")
          .value_or(source.is_live() ? recording::resident_bytes(recording.header().pid)
                                     : recording.header().health.rss_bytes.load());
  figures.heap = heap_of(source);
  figures.map = map_of(recording, environment);
  figures.devices = recording::devices_of(recording, source.failure());
  constexpr std::string_view kExpandable = "expandable_segments:True";
  figures.expandable_segments = contains(variables, "PYTORCH_CUDA_ALLOC_CONF", kExpandable) ||
                                contains(variables, "PYTORCH_HIP_ALLOC_CONF", kExpandable) ||
                                contains(variables, "PYTORCH_ALLOC_CONF", kExpandable);
  figures.arena_max_set = text_of(variables, "MALLOC_ARENA_MAX").has_value() ||
                          contains(variables, "GLIBC_TUNABLES", "malloc.arena_max");
  figures.remedies = remedies_for(figures);
  return figures;
}

}  // namespace oomrec::tools::findings
