#include "tools/findings/fragmentation/figures.h"

#include "tools/recording/live/processes.h"

namespace oomrec::tools::findings {
namespace {

// As a bundle has it in environment.json.
Json smaps_rollup_of(pid_t pid) {
  Json sizes = Json::object();
  for (const auto& [name, bytes] : recording::smaps_rollup(pid)) sizes[name] = bytes;
  return sizes;
}

// Python's objects lie in mappings.
std::optional<std::uint64_t> resident_mappings(const recording::Recording& recording) {
  if (!recording.has_residency()) return std::nullopt;
  std::uint64_t resident = 0;
  for (const recording::HolderFigures& holder : recording.holders())
    if (holder.space == Space::map || holder.space == Space::python)
      resident += holder.resident_bytes.value_or(holder.live_bytes);
  return resident;
}

MapFigures map_of(const recording::Recording& recording, const Json& rollup) {
  MapFigures figures;
  const recording::SpaceTotals totals = recording.totals(Space::map);
  figures.live_bytes = totals.live_bytes;
  figures.live_count = totals.live_count;
  figures.reserved_bytes =
      recording.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
  figures.resident_bytes = resident_mappings(recording);
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
  const Json rollup =
      source.pid != 0 ? smaps_rollup_of(source.pid) : member(environment, "smaps_rollup");
  figures.rss_bytes = number_of(rollup, "Rss")
                          .value_or(source.pid != 0 ? recording::resident_bytes(source.pid)
                                                    : recording.header().health.rss_bytes.load());
  figures.heap = heap_of(source);
  figures.map = map_of(recording, rollup);
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
