#include "tools/findings/fragmentation/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text/device_text.h"
#include "tools/base/text.h"
#include "tools/sections/devices.h"
#include "tools/sections/notes.h"

namespace oomrec::tools::findings {
namespace {

Json areas_json(const HeapFigures::Areas& areas) {
  return {{"count", areas.count},
          {"held_bytes", areas.held_bytes},
          {"arenas_bytes", areas.arenas_bytes},
          {"resident_bytes", areas.resident_bytes},
          {"live_bytes", areas.live_bytes},
          {"free_bytes", areas.free_bytes()},
          {"free_share", areas.free_share()},
          {"free_resident_bytes", areas.free_resident_bytes}};
}

Json runs_json(const FreeRuns& runs) {
  Json sizes = Json::array();
  for (const FreeRuns::Bucket& bucket : runs.sizes) {
    sizes.push_back({{"from", bucket.from},
                     {"to", bucket.to},
                     {"count", bucket.count},
                     {"bytes", bucket.bytes}});
  }
  return {{"bytes", runs.bytes},
          {"count", runs.count},
          {"largest_bytes", runs.largest_bytes},
          {"page_bytes", runs.page_bytes},
          {"sizes", std::move(sizes)}};
}

std::string row(std::string_view name, std::uint64_t bytes, const std::string& detail = {}) {
  return fmt::format("  {:<28}{:>10}{}{}\n", name, size_text(bytes), detail.empty() ? "" : "  ",
                     detail);
}

// "34.2 %  warning": a share of the held memory, in the same words as for devices. No word if
// `bytes` are too few.
std::string share_text(double share, std::uint64_t bytes, std::string_view of = {}) {
  const std::string_view word =
      bytes < kNotableBytes ? "" : text::fragmentation_word(static_cast<unsigned>(share * 100));
  return fmt::format("{}{}{}{}", percent_text(share), of, word.empty() ? "" : "  ", word);
}

// The same of free memory that is resident: untouched, or given back, it costs nothing.
std::string cost_text(const HeapFigures::Areas& areas) {
  return share_text(share_of(areas.costly_bytes(), areas.whole_bytes()), areas.costly_bytes(),
                    " of what is resident");
}

class Page {
 public:
  Page(const Fragmentation& figures, const bundles::Source& source, const Terminal& terminal)
      : figures_(figures), source_(source), terminal_(terminal) {}

  void print() const {
    print_heap();
    if (figures_.heap.runs) print_runs(*figures_.heap.runs);
    print_mappings();
    print_devices();
    print_advice();
    sections::print_notes(notes(), terminal_);
  }

 private:
  void heading(std::string_view text) const {
    fmt::print("\n{}\n", terminal_.paint(Colour::bold, text));
  }

  void print_heap() const {
    const HeapFigures& heap = figures_.heap;
    fmt::print("{}\n", terminal_.paint(Colour::bold, "heap (" + heap.allocator + ")"));
    fmt::print("{}",
               row("live", heap.live_bytes, "in " + plural(heap.live_count, "block", "blocks")));
    if (figures_.rss_bytes != 0)
      fmt::print("{}", row("resident, whole process", figures_.rss_bytes));
    if (!heap.areas) return;
    const HeapFigures::Areas& areas = *heap.areas;
    std::string pieces = plural(areas.count, "piece", "pieces");
    if (areas.arenas_bytes != 0)
      pieces += fmt::format(", {} in threads' arenas", size_text(areas.arenas_bytes));
    fmt::print("{}", row("held by the allocator", areas.held_bytes, pieces));
    if (areas.resident_bytes) fmt::print("{}", row("  of it resident", *areas.resident_bytes));
    fmt::print("{}",
               row("  of it live", areas.live_bytes,
                   areas.live_is_bound ? "at most: blocks from before attaching may have mappings "
                                         "of their own"
                                       : "without blocks that have their own mappings"));
    const std::string at_least = areas.live_is_bound ? "at least " : "";
    const std::string share = areas.free_resident_bytes
                                  ? percent_text(areas.free_share())
                                  : share_text(areas.free_share(), areas.free_bytes());
    fmt::print("{}", row("  of it free", areas.free_bytes(), at_least + share));
    if (areas.free_resident_bytes)
      fmt::print("{}", row("    of that resident", *areas.free_resident_bytes,
                           at_least + cost_text(areas)));
  }

  void print_runs(const FreeRuns& runs) const {
    heading("free between live blocks");
    fmt::print("{}", row("in all", runs.bytes, plural(runs.count, "run", "runs")));
    fmt::print("{}", row("in whole pages", runs.page_bytes, "malloc_trim(0) returns them"));
    fmt::print("{}", row("largest", runs.largest_bytes));
    std::uint64_t most = 1;
    for (const FreeRuns::Bucket& bucket : runs.sizes) most = std::max(most, bucket.bytes);
    for (const FreeRuns::Bucket& bucket : runs.sizes) {
      if (bucket.count == 0) continue;
      constexpr double kBarColumns = 40;
      const double part = static_cast<double>(bucket.bytes) / static_cast<double>(most);
      std::string bar;
      for (long i = std::lround(part * kBarColumns); i > 0; --i) bar += "▇";
      fmt::print("  < {:>9}  {:>12}  {:>10}  {}\n", size_text(bucket.to), count_text(bucket.count),
                 size_text(bucket.bytes), terminal_.paint(Colour::green, bar));
    }
  }

  void print_mappings() const {
    const MapFigures& map = figures_.map;
    heading("mappings");
    fmt::print("{}",
               row("live", map.live_bytes, "in " + plural(map.live_count, "mapping", "mappings")));
    if (map.resident_bytes) fmt::print("{}", row("  of it resident", *map.resident_bytes));
    if (map.reserved_bytes != 0)
      fmt::print("{}", row("reserved", map.reserved_bytes, "address space, no memory"));
    if (map.anonymous_bytes)
      fmt::print("{}", row("anonymous, resident", *map.anonymous_bytes, "heap and mappings"));
    if (map.huge_page_bytes && *map.huge_page_bytes != 0)
      fmt::print("{}", row("  of it huge pages", *map.huge_page_bytes));
    if (map.swapped_bytes && *map.swapped_bytes != 0)
      fmt::print("{}", row("swapped out", *map.swapped_bytes));
  }

  void print_devices() const {
    if (figures_.devices.empty()) return;
    heading("devices");
    for (const recording::DeviceFigures& device : figures_.devices)
      fmt::print("{}", sections::device_text(device));
  }

  void print_advice() const {
    heading("what helps");
    if (figures_.remedies.empty()) fmt::print("  nothing notable: little memory is held unused\n");
    for (const Remedy& advice : figures_.remedies)
      fmt::print("  {} {}\n", terminal_.paint(Colour::green, "→"), wrap(advice.text, kColumns, 4));
  }

  std::vector<std::string> notes() const {
    const HeapFigures& heap = figures_.heap;
    std::vector<std::string> notes;
    if (heap.allocator != "glibc") {
      notes.push_back(
          fmt::format("the memory that {} holds is unknown: only glibc's can be recognized among "
                      "the process's mappings",
                      heap.allocator));
    } else if (!heap.areas) {
      notes.emplace_back(
          "the heap's address range is unknown: it can only be read while the process runs, when "
          "its bundle is written");
    } else if (!heap.runs && heap.areas->live_is_bound) {
      notes.emplace_back(
          "free memory between blocks is unknown: the addresses of blocks from before `oomrec "
          "attach` are not recorded");
    } else if (!heap.runs) {
      notes.emplace_back(
          "free memory between blocks is unknown: it needs an exact recording (oomrec run --mode "
          "exact)");
    }
    for (std::string& note : sections::notes_of(source_)) notes.push_back(std::move(note));
    return notes;
  }

  const Fragmentation& figures_;
  const bundles::Source& source_;
  const Terminal& terminal_;
};

}  // namespace

Json fragmentation_json(const Fragmentation& figures, const bundles::Source& source) {
  const HeapFigures& heap = figures.heap;
  const MapFigures& map = figures.map;
  Json devices = Json::array();
  for (const recording::DeviceFigures& device : figures.devices)
    devices.push_back(sections::device_json(device));
  Json advice = Json::array();
  for (const Remedy& one : figures.remedies)
    advice.push_back({{"rule", one.rule}, {"text", one.text}});
  return {
      {"schema_version", 1},
      {"mode", name_of(source.recording->mode_now())},
      {"rss_bytes", number_or_null(figures.rss_bytes)},
      {"heap",
       {{"allocator", heap.allocator},
        {"live_bytes", heap.live_bytes},
        {"live_count", heap.live_count},
        {"areas", heap.areas ? areas_json(*heap.areas) : Json(nullptr)},
        {"free_runs", heap.runs ? runs_json(*heap.runs) : Json(nullptr)}}},
      {"map",
       {{"live_bytes", map.live_bytes},
        {"live_count", map.live_count},
        {"reserved_bytes", map.reserved_bytes},
        {"resident_bytes", map.resident_bytes},
        {"anonymous_bytes", map.anonymous_bytes},
        {"huge_page_bytes", map.huge_page_bytes},
        {"swapped_bytes", map.swapped_bytes}}},
      {"devices", std::move(devices)},
      {"advice", std::move(advice)},
  };
}

void print_fragmentation(const Fragmentation& figures, const bundles::Source& source,
                         const Terminal& terminal) {
  Page{figures, source, terminal}.print();
}

}  // namespace oomrec::tools::findings
