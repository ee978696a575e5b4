// `oomrec stats`: what a recording adds up to.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/print/devices.h"
#include "tools/print/notes.h"
#include "tools/print/spaces.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec stats\n"
    "  oomrec stats --top 20 oom_dumps/oom_cpu_20261121_101530_001\n"
    "  oomrec stats --json | jq .size_histogram\n";

using Functions = std::vector<recording::FunctionFigures>;

Json functions_json(const Functions& functions, const recording::Places& places, std::size_t top) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(functions.size(), top); ++i) {
    const recording::Place& place = places[functions[i].place];
    rows.push_back({
        {"function", text_or_null(place.function)},
        {"file", text_or_null(place.file)},
        {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
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
    rows.push_back(print::device_json(device));
  return rows;
}

Json statistics_json(const recording::Statistics& statistics, const bundles::Source& source,
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
      {"top_by_bytes", functions_json(statistics.by_bytes, *source.places, top)},
      {"top_by_count", functions_json(statistics.by_count, *source.places, top)},
      {"size_histogram", sizes},
      {"apis", apis},
      {"spaces", print::spaces_json(*source.recording)},
      {"devices", devices_json(source)},
  };
}

// What the totals count and the table of sizes does not: drivers' calls are tallied by function.
recording::SpaceTotals of_gpus(const recording::Recording& recording) {
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
  Page(const recording::Statistics& statistics, const bundles::Source& source, std::size_t top)
      : statistics_(statistics), source_(source), top_(top) {}

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
    std::vector<std::string> notes = print::notes_of(source_);
    if (statistics_.estimated)
      notes.emplace_back("sizes, calls and functions are estimates from these samples");
    print::print_notes(notes, terminal_);
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
    const recording::SpaceTotals gpus = of_gpus(*source_.recording);
    if (gpus.allocated_count == 0) return;
    fmt::print("  {} of GPUs are not in it: {}\n",
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
      fmt::print("{}", print::device_text(device));
  }

  void print_functions(std::string_view title, const Functions& functions) const {
    heading(title);
    columns(fmt::format("  {:>10}  {:>14}  {}", "allocated", "allocations", "function"));
    for (std::size_t i = 0; i < std::min(functions.size(), top_); ++i) {
      const recording::Place& place = (*source_.places)[functions[i].place];
      const std::string text = recording::place_text(place, *source_.places);
      fmt::print("  {:>10}  {:>14}  {}\n", size_text(functions[i].bytes),
                 count_text(functions[i].count),
                 place.kind == recording::Place::Kind::python ? clip_start(text, kColumns - 30)
                                                              : clip(text, kColumns - 30));
    }
  }

  const recording::Statistics& statistics_;
  const bundles::Source& source_;
  const std::size_t top_;
  const Terminal terminal_{STDOUT_FILENO};
};

}  // namespace

int stats_command(const Words& words) {
  Arguments arguments{
      "stats", "[OPTIONS] [BUNDLE]",
      "Totals, peak, sizes, allocator functions, and the functions that allocated most: "
      "by the innermost Python line of the program's own, else the innermost function.",
      kExamples};
  bundles::ReadOptions options;
  unsigned top = 5;
  options.add_to(arguments);
  arguments.option("--top", "N", top, "the N largest functions (5; 100 with --json)");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  recording::Stacks stacks{*source.recording, *source.places};
  const recording::Statistics statistics =
      recording::statistics_of(*source.recording, stacks, *source.places);
  if (options.json) {
    print_json(statistics_json(statistics, source, arguments.given("--top") ? top : 100));
  } else {
    Page{statistics, source, top}.print();
  }
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
