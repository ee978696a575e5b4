#include "tools/print/resident_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tools/base/text.h"
#include "tools/print/duration.h"
#include "tools/recording/analysis/allocator.h"

namespace oomrec::tools::print {
namespace {

struct Kind {
  std::string_view key, name;
};
// In the order of ResidentKind.
constexpr Kind kKinds[] = {
    {"heap", "the heap"},
    {"held", "mappings and large blocks that have holders"},
    {"unheld", "anonymous memory without a holder: no hook saw who asked for it"},
    {"stacks", "stacks of threads"},
    {"written_file_pages", "static variables, and what it has written of private file mappings"},
    {"file_pages", "pages of files, which the kernel takes back when it needs them"},
    {"shared", "shared memory: tmpfs, memfd, System V"},
    {"recorder", "the recorder"},
};
static_assert(std::size(kKinds) == session::kResidentKinds);

// Of a process that has ended: between the look and the last sign of life.
double seconds_before_end(const recording::Recording& recording) {
  const std::uint64_t end = recording.end_ns(), look = recording.residency().time_ns;
  return static_cast<double>(end - std::min(end, look)) / 1e9;
}

std::uint64_t bytes_of(const recording::ResidencyTotals& look, session::ResidentKind kind) {
  return look.kind_bytes[static_cast<std::size_t>(kind)];
}

// Of the heap at the look, what small blocks take up that are in use.
std::uint64_t small_block_bytes(const recording::Recording& recording) {
  const recording::ResidencyTotals& look = recording.residency();
  const std::uint64_t live = recording.totals(Space::heap).live_bytes;
  return std::min(bytes_of(look, session::ResidentKind::heap),
                  live - std::min(live, look.large_block_bytes));
}

// "the heap (jemalloc): 97.7 MiB in small blocks, the rest kept free"
std::string heap_text(const recording::Recording& recording) {
  const std::string allocator = recording::allocator_of(recording);
  return fmt::format("the heap{}: {} in small blocks, the rest kept free",
                     allocator == "glibc" ? "" : fmt::format(" ({})", allocator),
                     size_text(small_block_bytes(recording)));
}

}  // namespace

std::string time_of_look(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return {};
  if (source.is_live()) return "now";
  const double seconds = seconds_before_end(recording);
  return seconds < 0.05
             ? "at the last look"
             : fmt::format("at the last look, {} before the end", duration_text(seconds));
}

std::string resident_memory_text(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return {};
  const recording::ResidencyTotals& look = recording.residency();
  std::vector<std::size_t> order(std::size(kKinds));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return look.kind_bytes[a] > look.kind_bytes[b];
  });
  std::uint64_t sum = 0;
  std::string text;
  for (const std::size_t kind : order) {
    const std::uint64_t bytes = look.kind_bytes[kind];
    sum += bytes;
    if (bytes == 0) continue;
    const bool is_heap = kind == static_cast<std::size_t>(session::ResidentKind::heap);
    text += fmt::format("  {:>10}  {}\n", size_text(bytes),
                        is_heap ? heap_text(recording) : kKinds[kind].name);
  }
  text += fmt::format("  {:>10}  resident{}\n", size_text(sum),
                      look.is_partial ? ", as far as there was time to look" : "");
  if (const std::uint64_t swapped = look.touched_bytes - std::min(look.touched_bytes, sum))
    text += fmt::format("  {:>10}  more in swap\n", size_text(swapped));
  return text;
}

std::vector<UnheldPart> unheld_parts(const bundles::Source& source) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  const recording::Recording& recording = *source.recording;
  std::vector<UnheldPart> parts;
  if (!recording.has_residency() || recording.weight() != recording::Weight::resident) return parts;
  const auto of_kind = [&](session::ResidentKind kind) {
    return bytes_of(recording.residency(), kind);
  };
  // Blocks with mappings of their own are not in the heap: what has no holder is at least this.
  const std::uint64_t heap = of_kind(session::ResidentKind::heap);
  const std::uint64_t live = recording.totals(Space::heap).live_bytes;
  parts.push_back({heap - std::min(heap, live), "heap memory without a holder",
                   "freed and kept by the allocator (oomrec fragmentation), or allocated by a "
                   "library whose calls are not observed"});
  // An interpreter's own heap is in the pool's holder.
  const bool has_own_heap = recording.header().python.source == session::ObjectSource::own_heap;
  parts.push_back({has_own_heap ? 0 : of_kind(session::ResidentKind::unheld),
                   "anonymous memory without a holder",
                   "from an allocator that asks the kernel itself, or a library whose calls are "
                   "not observed"});
  const session::StringId note = recording.header().heap_note;
  if (note != 0)
    for (UnheldPart& part : parts) part.reason += fmt::format(" ({})", recording.text(note));
  parts.push_back({of_kind(session::ResidentKind::stacks), "stacks of threads",
                   "local variables of their functions, or a deep recursion"});
  parts.push_back({recording.residency().variable_bytes, "static variables",
                   "arrays and the like that are part of the program itself"});
  std::erase_if(parts, [](const UnheldPart& part) { return part.bytes < kLeast; });
  std::sort(parts.begin(), parts.end(),
            [](const UnheldPart& a, const UnheldPart& b) { return a.bytes > b.bytes; });
  return parts;
}

std::string file_pages_text(const bundles::Source& source) {
  constexpr double kNotable = 0.25;
  const recording::ResidencyTotals& look = source.recording->residency();
  const std::uint64_t resident =
      std::accumulate(look.kind_bytes.begin(), look.kind_bytes.end(), std::uint64_t{0});
  const std::uint64_t of_files = bytes_of(look, session::ResidentKind::files);
  if (share_of(of_files, resident) < kNotable) return {};
  return fmt::format(
      "{} of the {} that are resident are pages of files, which the kernel takes back when it "
      "needs "
      "them: that they grow is no leak.",
      size_text(of_files), size_text(resident));
}

Json resident_memory_json(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return nullptr;
  const recording::ResidencyTotals& look = recording.residency();
  const std::uint64_t sum =
      std::accumulate(look.kind_bytes.begin(), look.kind_bytes.end(), std::uint64_t{0});
  Json kinds = Json::object();
  for (std::size_t kind = 0; kind < std::size(kKinds); ++kind)
    kinds[std::string{kKinds[kind].key}] = look.kind_bytes[kind];
  return {{"seconds_before_end", source.is_live() ? 0 : seconds_before_end(recording)},
          {"complete", !look.is_partial},
          {"resident_bytes", sum},
          {"swapped_bytes", look.touched_bytes - std::min(look.touched_bytes, sum)},
          {"untouched_bytes", look.untouched_bytes},
          {"kinds", kinds},
          {"small_block_bytes", small_block_bytes(recording)}};
}

}  // namespace oomrec::tools::print
