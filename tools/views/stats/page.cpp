#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/devices.h"
#include "tools/sections/notes.h"
#include "tools/views/stats/stats.h"

namespace oomrec::tools::views {
namespace {

// GPU memory. The totals include it, but the table of sizes does not: allocations from drivers are
// counted by function only.
recording::SpaceTotals gpu_totals(const recording::Recording& recording) {
  recording::SpaceTotals sum{};
  for (const Space space : recording::spaces_that_add_up()) {
    if (!is_device_space(space)) continue;
    const recording::SpaceTotals totals = recording.totals(space);
    sum.allocated_count += totals.allocated_count;
    sum.allocated_bytes += totals.allocated_bytes;
  }
  return sum;
}

class Page {
 public:
  Page(const recording::Statistics& statistics, const bundles::Source& source, std::size_t top,
       const Terminal& terminal)
      : statistics_(statistics), source_(source), top_(top), terminal_(terminal) {}

  void print() const {
    fmt::print("{:<18} {}\n", "allocations", count_text(statistics_.total_allocations));
    fmt::print("{:<18} {}\n", "allocated", size_text(statistics_.total_allocated_bytes));
    fmt::print("{:<18} {}\n", "peak", size_text(statistics_.peak_bytes));
    fmt::print("{:<18} {} in {}\n", "live at the end", size_text(statistics_.live_bytes),
               plural(statistics_.live_count, "block", "blocks"));
    fmt::print("{:<18} {}\n", "mode", name_of(source_.recording->mode_now()));
    print_sizes();
    print_apis();
    print_devices();
    print_functions("functions by bytes allocated", statistics_.by_bytes);
    print_functions("functions by number of allocations", statistics_.by_count);
    std::vector<std::string> notes = sections::notes_of(source_);
    if (statistics_.estimated)
      notes.emplace_back("sizes, calls and functions are estimates from these samples");
    const session::Python& python = source_.recording->header().python;
    if (python.version_hex != 0 && python.source != session::ObjectSource::malloc &&
        python.objects != session::PoolObjects::none)
      notes.emplace_back(
          "the first lines and the table of sizes have the mappings that Python's small objects "
          "lie "
          "in, not each object");
    sections::print_notes(notes, terminal_);
  }

 private:
  void heading(std::string_view text) const {
    fmt::print("\n{}\n", terminal_.paint(Colour::bold, text));
  }

  void columns(const std::string& names) const {
    fmt::print("{}\n", terminal_.paint(Colour::dim, names));
  }

  void print_sizes() const {
    constexpr std::size_t kBarColumns = 40;
    heading("sizes of allocations");
    columns(fmt::format("  {:>11}  {:>14}  {:>10}", "block", "allocations", "allocated"));
    std::uint64_t most = 1;
    for (const recording::SizeBucket& bucket : statistics_.sizes)
      most = std::max(most, bucket.count);
    for (const recording::SizeBucket& bucket : statistics_.sizes) {
      const double part = static_cast<double>(bucket.count) / static_cast<double>(most);
      const auto length = static_cast<std::size_t>(std::lround(part * kBarColumns));
      std::string bar;
      for (std::size_t i = 0; i < length; ++i) bar += "▇";
      fmt::print("  < {:>9}  {:>14}  {:>10}  {}\n", size_text(bucket.to), count_text(bucket.count),
                 size_text(bucket.bytes), terminal_.paint(Colour::green, bar));
    }
    const recording::SpaceTotals gpus = gpu_totals(*source_.recording);
    if (gpus.allocated_count == 0) return;
    fmt::print("  not included: {} of GPU memory, {}\n",
               plural(gpus.allocated_count, "allocation", "allocations"),
               size_text(gpus.allocated_bytes));
  }

  void print_apis() const {
    heading("allocator functions");
    std::size_t width = 16;
    for (const recording::ApiFigures& api : statistics_.apis)
      width = std::max(width, name_of(api.api).size());
    columns(fmt::format("  {:<{}} {:>14}  {:>10}", "function", width, "calls", "bytes"));
    for (const recording::ApiFigures& api : statistics_.apis) {
      fmt::print("  {:<{}} {:>14}  {:>10}\n", name_of(api.api), width, count_text(api.count),
                 size_text(api.bytes));
    }
  }

  void print_devices() const {
    const std::vector<recording::DeviceFigures> devices =
        recording::devices_of(*source_.recording, source_.failure());
    if (devices.empty()) return;
    heading("devices");
    for (const recording::DeviceFigures& device : devices)
      fmt::print("{}", sections::device_text(device));
  }

  void print_functions(std::string_view title,
                       const std::vector<recording::FunctionFigures>& functions) const {
    heading(title);
    columns(fmt::format("  {:>10}  {:>14}  {}", "allocated", "allocations", "function"));
    for (std::size_t i = 0; i < std::min(functions.size(), top_); ++i) {
      const recording::Location& location = (*source_.locations)[functions[i].location];
      const std::string text =
          recording::location_text(location, *source_.locations, kColumns - 30);
      fmt::print(
          "  {:>10}  {:>14}  {}\n", size_text(functions[i].bytes), count_text(functions[i].count),
          location.kind == recording::Location::Kind::python ? clip_start(text, kColumns - 30)
                                                             : clip(text, kColumns - 30));
    }
  }

  const recording::Statistics& statistics_;
  const bundles::Source& source_;
  const std::size_t top_;
  const Terminal& terminal_;
};

}  // namespace

void print_stats_page(const recording::Statistics& statistics, const bundles::Source& source,
                      std::size_t top, const Terminal& terminal) {
  Page{statistics, source, top, terminal}.print();
}

}  // namespace oomrec::tools::views
