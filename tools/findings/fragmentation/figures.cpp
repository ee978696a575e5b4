#include "tools/findings/fragmentation/figures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "common/facts/environment.h"
#include "tools/base/fact_reader.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/live/processes.h"
#include "tools/recording/reading/old_memory.h"

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
  const Json& variables = member(environment, facts::kVariablesKey);
  const recording::Recording& recording = *source.recording;
  Fragmentation figures;
  const Json rollup =
      source.pid != 0 ? smaps_rollup_of(source.pid) : member(environment, facts::kRollupKey);
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

namespace {

using bundle::HeapArea;
using session::TableId;

// The share of live blocks whose addresses must be in the recording. With fewer of them, the gaps
// between known blocks may be in use.
constexpr double kAllBlocks = 0.98;
constexpr std::size_t kMostAreas = 4096;
constexpr std::uint64_t kMostAddresses = std::uint64_t{1} << 47;

// The areas in environment.json, whose numbers may be forged.
std::optional<std::vector<HeapArea>> stored_areas(const std::filesystem::path& bundle) {
  struct Heap : facts::Heap {
    std::vector<facts::HeapArea> areas;
    std::uint64_t left_out = 0;
  };
  const auto heap = fact_in<Heap>(read_json(bundle, "environment.json"));
  if (!heap) return std::nullopt;
  std::vector<HeapArea> areas;
  for (const facts::HeapArea& row : heap->areas)
    if (row.bytes != 0 && row.bytes <= ~row.start && areas.size() < kMostAreas)
      areas.push_back({row.start, row.start + row.bytes,
                       row.resident_bytes.value_or(bundle::kNotCounted), row.is_main});
  return areas;
}

std::optional<std::vector<HeapArea>> areas_of_process(int pid) {
  std::vector<char> buffer(std::size_t{64} << 10);
  bundle::HeapAreas found{pid, buffer};
  if (!found.is_open()) return std::nullopt;
  std::vector<HeapArea> areas;
  for (HeapArea area; found.next(area);) areas.push_back(area);
  return areas;
}

// Removes areas that are really the program's own mappings.
void remove_mappings(std::vector<HeapArea>& areas, const session::View& view) {
  for (const auto& range : session::entries<session::LiveRange>(view, TableId::live_ranges)) {
    if (range.start == 0) continue;
    const std::uint64_t start = range.start;
    std::erase_if(areas, [&](const HeapArea& area) {
      return !area.is_main && start < area.end && start + range.bytes > area.start;
    });
  }
}

std::optional<std::vector<HeapArea>> areas_of(const bundles::Source& source) {
  const session::View& view = source.recording->view();
  std::optional<std::vector<HeapArea>> areas;
  if (!source.bundle.empty())
    areas = stored_areas(source.bundle);
  else if (source.pid != 0)
    areas = areas_of_process(source.pid);
  if (areas) remove_mappings(*areas, view);
  return areas;
}

// Heap blocks whose addresses are in the recording.
struct RecordedChunks {
  struct Certain {
    HeapChunk chunk;
    std::uint32_t holder;
  };
  std::vector<HeapChunk> all;
  std::vector<Certain> certain;  // recorded in either mode, because they are large
};

RecordedChunks chunks_in(const session::View& view) {
  RecordedChunks chunks;
  session::Holder holder{};
  for (const auto& block : session::entries<session::LiveBlock>(view, TableId::live_blocks)) {
    if (block.address == 0 || block.weight == 0 ||
        !view.read(TableId::holders, block.holder, holder) ||
        holder.space != static_cast<std::uint8_t>(Space::heap))
      continue;
    // A forged gap may be the larger one.
    const std::uint64_t gap = std::min<std::uint64_t>(block.gap_bytes, block.bytes);
    chunks.all.push_back(chunk_of(block.address, block.bytes - gap));
    if (block.weight == 1) chunks.certain.push_back({chunks.all.back(), block.holder});
  }
  for (std::uint64_t page = 1; page < view.count(TableId::side_pages); ++page) {
    view.for_each_small_block(page, [&](const session::SmallBlock& small) {
      chunks.all.push_back(chunk_of(small.address, small.bytes));
    });
  }
  return chunks;
}

bool is_inside(const HeapChunk& chunk, const std::vector<HeapArea>& areas) {
  return std::ranges::any_of(areas, [&](const HeapArea& area) {
    return chunk.start >= area.start && chunk.start < area.end;
  });
}

// Of the live bytes in the areas, those that are not in memory: of the holders of large blocks
// there, as far as the latest look knows.
std::uint64_t untouched_inside(const std::unordered_map<std::uint32_t, std::uint64_t>& inside,
                               const recording::Recording& recording) {
  if (inside.empty() || !recording.has_residency()) return 0;
  std::uint64_t untouched = 0;
  for (const recording::HolderFigures& holder : recording.holders()) {
    const auto blocks = inside.find(holder.entry);
    if (blocks == inside.end()) continue;
    const std::uint64_t resident = holder.resident_bytes.value_or(holder.live_bytes);
    untouched +=
        std::min(holder.live_bytes - std::min(holder.live_bytes, resident), blocks->second);
  }
  return untouched;
}

HeapFigures::Areas figures_of(const std::vector<HeapArea>& areas, const RecordedChunks& chunks,
                              const recording::Recording& recording) {
  HeapFigures::Areas figures;
  figures.count = areas.size();
  std::uint64_t resident = 0;
  bool counted = true;
  for (const HeapArea& area : areas) {
    figures.held_bytes += area.bytes();
    if (!area.is_main) figures.arenas_bytes += area.bytes();
    counted = counted && area.resident_bytes != bundle::kNotCounted;
    resident += area.resident_bytes;
  }
  if (counted) figures.resident_bytes = resident;
  // A block with its own mapping is large, so it is recorded in either mode.
  std::uint64_t outside = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> inside;  // by holder
  for (const auto& [chunk, holder] : chunks.certain)
    (is_inside(chunk, areas) ? inside[holder] : outside) += chunk.end - chunk.start;
  const std::uint64_t live = recording.totals(Space::heap).live_bytes;
  figures.live_bytes = std::min(live - std::min(live, outside), figures.held_bytes);
  if (counted) {
    const std::uint64_t untouched = untouched_inside(inside, recording);
    const std::uint64_t touched = figures.live_bytes - std::min(figures.live_bytes, untouched);
    figures.free_resident_bytes =
        std::min(resident - std::min(resident, touched), figures.free_bytes());
  }
  return figures;
}

}  // namespace

double HeapFigures::Areas::free_share() const {
  return held_bytes == 0 ? 0 : static_cast<double>(free_bytes()) / static_cast<double>(held_bytes);
}

// A chunk is a multiple of 16 bytes, at least 32, and begins 16 bytes before its block: 8 bytes of
// size, and before them 8 bytes that the previous chunk may use while it is live.
HeapChunk chunk_of(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t start = address - std::min<std::uint64_t>(address, 16);
  const std::uint64_t least = std::min(bytes, kMostAddresses) + 8;
  const std::uint64_t chunk = std::max<std::uint64_t>(32, (least + 15) & ~std::uint64_t{15});
  return {start, start + std::min(chunk, ~start)};
}

FreeRuns free_runs(const std::vector<bundle::HeapArea>& areas, std::vector<HeapChunk> chunks,
                   std::uint64_t page_bytes) {
  std::ranges::sort(chunks, {}, &HeapChunk::start);
  FreeRuns runs;
  std::array<FreeRuns::Bucket, 64> sizes{};
  const auto add = [&](std::uint64_t start, std::uint64_t end) {
    if (start >= end) return;
    const std::uint64_t bytes = end - start;
    runs.bytes += bytes;
    ++runs.count;
    runs.largest_bytes = std::max(runs.largest_bytes, bytes);
    const std::uint64_t first_page = (start + page_bytes - 1) / page_bytes;
    const std::uint64_t end_page = end / page_bytes;
    if (first_page < end_page) runs.page_bytes += (end_page - first_page) * page_bytes;
    FreeRuns::Bucket& bucket = sizes[static_cast<std::size_t>(std::bit_width(bytes)) - 1];
    ++bucket.count;
    bucket.bytes += bytes;
  };
  for (const bundle::HeapArea& area : areas) {
    std::uint64_t at = area.start;
    auto chunk = std::ranges::lower_bound(chunks, area.start, {}, &HeapChunk::start);
    for (; chunk != chunks.end() && chunk->start < area.end; ++chunk) {
      add(at, chunk->start);
      at = std::max(at, chunk->end);
    }
    add(at, area.end);
  }
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    sizes[b].from = std::uint64_t{1} << b;
    sizes[b].to = b + 1 < sizes.size() ? std::uint64_t{1} << (b + 1) : ~std::uint64_t{0};
  }
  const auto used = [](const FreeRuns::Bucket& bucket) { return bucket.count != 0; };
  const auto first = std::ranges::find_if(sizes, used);
  const auto last = std::find_if(sizes.rbegin(), sizes.rend(), used).base();
  if (first < last) runs.sizes.assign(first, last);
  return runs;
}

HeapFigures heap_of(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  HeapFigures figures;
  figures.allocator = recording::allocator_of(recording);
  const recording::SpaceTotals totals = recording.totals(Space::heap);
  figures.live_bytes = totals.live_bytes;
  figures.live_count = totals.live_count;
  if (figures.allocator != "glibc") return figures;
  const auto areas = areas_of(source);
  if (!areas || areas->empty()) return figures;
  const RecordedChunks chunks = chunks_in(recording.view());
  figures.areas = figures_of(*areas, chunks, recording);
  // Which of the old blocks have mappings of their own is not known.
  figures.areas->live_is_bound = recording::old_memory_of(recording.view()).heap;
  const bool is_complete =
      static_cast<double>(chunks.all.size()) >= kAllBlocks * static_cast<double>(totals.live_count);
  if (!recording.estimated() && totals.live_count != 0 && is_complete &&
      !figures.areas->live_is_bound)
    figures.runs = free_runs(*areas, chunks.all, session::page_bytes_of(recording.header()));
  return figures;
}

}  // namespace oomrec::tools::findings
