#include "tools/findings/leaks/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/base/text.h"
#include "tools/findings/leaks/resident_growth.h"
#include "tools/findings/leaks/severity.h"
#include "tools/sections/notes.h"
#include "tools/sections/resident_memory.h"

namespace oomrec::tools::findings {
namespace {

constexpr double kBytesPerMiB = 1024 * 1024;

std::string bytes_text(double bytes) {
  return size_text(static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes))));
}

std::string rate_text(const Growth& growth) {
  return fmt::format("{} in {} ({}/s)", bytes_text(growth.bytes),
                     duration_text(growth.window_seconds), bytes_text(growth.bytes_per_second));
}

Json rounded(double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); }

// The keys that describe the growth of a stack or a device.
void add_growth(Json& row, const Growth& growth) {
  row["growth_bytes"] = rounded(growth.bytes);
  row["bytes_per_second"] = growth.bytes_per_second;
  row["window_seconds"] = growth.window_seconds;
  row["r_squared"] = growth.r_squared;
  row["steadiness"] = growth.steadiness;
}

Json device_json(const DeviceGrowth& device) {
  Json row{{"device", device.device}};
  add_growth(row, device.growth);
  return row;
}

}  // namespace

LeakReport::LeakReport(const bundles::Source& source)
    : source_(source),
      stacks_(*source.recording, *source.locations, recording::frames_of(*source.recording)),
      leaks_(leaks_of(*source.recording, stacks_, *source.locations, until_of(source))),
      reach_(first_reached(leaks_, *source.recording, recording::timeline_of(*source.recording))),
      processes_(process_leaks(source, leaks_)) {}

Json LeakReport::leak_json(const Leak& leak) const {
  Json row{{"space", name_of(leak.space)},
           {"device", text_or_null(leak.device)},
           {"estimated", leak.estimated}};
  add_growth(row, leak.growth);
  row["confidence"] = leak.confidence;
  row["live_bytes"] = leak.live_bytes;
  row["live_count"] = leak.live_count;
  row["survivor_share"] = leak.survivors;
  row["oldest_seconds"] = leak.oldest_s;
  row["stacks"] = leak.stacks;
  row["suggestion"] = suggestion_of(leak, stacks_, *source_.locations);
  row["stack"] = recording::stack_json(stacks_.locations(leak.stack), *source_.locations);
  return row;
}

Json LeakReport::unsteady_json(const Unsteady& unsteady) const {
  return {{"space", name_of(unsteady.space)},
          {"estimated", unsteady.estimated},
          {"growth_bytes", rounded(unsteady.bytes)},
          {"stopped_seconds", unsteady.stopped_s},
          {"stack", recording::stack_json(stacks_.locations(unsteady.stack), *source_.locations)}};
}

Json LeakReport::process_json(const ProcessLeaks& process) const {
  return {{"pid", process.pid},
          {"rank", text_or_null(process.rank)},
          {"program", text_or_null(process.program)},
          {"bundle", text_or_null(process.bundle)},
          {"checkpoints", process.leaks.checkpoints},
          {"detected", process.leaks.detected()},
          {"leaks", process.leaks.leaks.size()},
          {"growth_bytes", rounded(process.leaks.bytes())},
          {"bytes_per_second", process.leaks.bytes_per_second()}};
}

Json LeakReport::json(std::size_t top) const {
  Json leaks = Json::array();
  for (std::size_t i = 0; i < std::min(top, leaks_.leaks.size()); ++i)
    leaks.push_back(leak_json(leaks_.leaks[i]));
  Json devices = Json::array();
  for (const DeviceGrowth& device : leaks_.devices) devices.push_back(device_json(device));
  Json processes = Json::array();
  for (const ProcessLeaks& process : processes_) processes.push_back(process_json(process));
  return {
      {"schema_version", 1},
      {"detected", leaks_.detected()},
      {"severity", severity_of(leaks_, reach_)},
      {"memory_increase_mb", leaks_.bytes() / kBytesPerMiB},
      {"time_window_seconds", leaks_.seconds},
      {"suggestions", suggestions_of(leaks_, stacks_, *source_.locations)},
      {"checkpoints", leaks_.checkpoints},
      {"checkpoints_needed", kFewestMoments},
      {"mode", name_of(source_.recording->mode_now())},
      {"estimated", source_.recording->estimated()},
      {"limit", reach_ ? Json{{"name", reach_->name},
                              {"bytes", reach_->bytes},
                              {"reached_in_seconds", reach_->seconds}}
                       : Json(nullptr)},
      {"leaks", std::move(leaks)},
      {"unsteady", leaks_.unsteady ? unsteady_json(*leaks_.unsteady) : Json(nullptr)},
      {"resident_growth", resident_growth_json(source_)},
      {"resident_memory", sections::resident_memory_json(source_)},
      {"devices", std::move(devices)},
      {"processes", std::move(processes)},
  };
}

void LeakReport::print_summary(const Terminal& terminal) const {
  const std::string period =
      fmt::format("{} over {}{}", plural(leaks_.checkpoints, "checkpoint", "checkpoints"),
                  duration_text(leaks_.seconds),
                  leaks_.before_end_s ? ", until the process freed most and ended" : "");
  if (!leaks_.has_enough_checkpoints()) {
    fmt::print("{}\n  {}\n", terminal.paint(Colour::bold, "too early to tell"),
               wrap(fmt::format("{}: leak detection needs {}. The recorder writes up to ten a "
                                "second while the program allocates.",
                                period, kFewestMoments),
                    kColumns, 2));
    return print_resident_growth();
  }
  if (!leaks_.detected()) {
    fmt::print("{}\n  nothing has grown steadily enough, for long enough: {}\n",
               terminal.paint(Colour::bold, "no leak found"), period);
    return print_resident_growth();
  }
  const std::string found =
      fmt::format("{}: {} ({}/s)", plural(leaks_.leaks.size(), "leak", "leaks"),
                  bytes_text(leaks_.bytes()), bytes_text(leaks_.bytes_per_second()));
  fmt::print("{}\n  severity {}, {}\n", terminal.paint(Colour::red, found),
             severity_of(leaks_, reach_), period);
  if (reach_ && reach_->seconds >= 1) {
    fmt::print("  {} of {} is reached in about {} at this rate\n", reach_->name,
               size_text(reach_->bytes), duration_text(reach_->seconds));
  } else if (reach_) {
    fmt::print("  {} of {} is reached\n", reach_->name, size_text(reach_->bytes));
  }
  print_resident_growth();
}

// What the user may have seen grow.
void LeakReport::print_resident_growth() const {
  for (const std::string& text :
       {resident_growth_text(source_), sections::file_pages_text(source_)})
    if (!text.empty()) fmt::print("  {}\n", wrap(text, kColumns, 2));
}

void LeakReport::print_leak(std::size_t number, const Leak& leak,
                            const recording::StackStyle& style) const {
  const std::string figures =
      fmt::format("{}{}", leak.estimated ? "about " : "", rate_text(leak.growth));
  const std::string memory = leak.device.empty() ? std::string{name_of(leak.space)} : leak.device;
  fmt::print("\n  {:>2}  {}  {}, confidence {} ({:.2f})\n", number,
             style.terminal.paint(Colour::yellow, figures), memory,
             confidence_word(leak.confidence), leak.confidence);
  std::string facts = fmt::format("holds {}{} in {}, {} of all that it allocated; R² {:.2f}",
                                  leak.estimated ? "about " : "", size_text(leak.live_bytes),
                                  plural(leak.live_count, "block", "blocks"),
                                  percent_text(leak.survivors), leak.growth.r_squared);
  if (leak.oldest_s) facts += fmt::format("; the oldest is {} old", duration_text(*leak.oldest_s));
  fmt::print("      {}\n", wrap(facts, kColumns, 6));
  if (leak.stacks > 1) {
    fmt::print("      of {} that grow together; the largest:\n",
               plural(leak.stacks, "stack", "stacks"));
  }
  fmt::print("{}", recording::stack_text(stacks_.locations(leak.stack), *source_.locations, style));
  const std::string advice = suggestion_of(leak, stacks_, *source_.locations);
  fmt::print("      {} {}\n", style.terminal.paint(Colour::green, "→"), wrap(advice, kColumns, 8));
}

void LeakReport::print_unsteady(const Unsteady& unsteady,
                                const recording::StackStyle& style) const {
  const std::string bytes =
      fmt::format("{}{}", unsteady.estimated ? "about " : "", bytes_text(unsteady.bytes));
  if (unsteady.stopped_s)
    fmt::print("  grew by {}, and stopped {} ago\n", bytes, duration_text(*unsteady.stopped_s));
  else
    fmt::print("  most growth since the first quarter, but not steady: {}\n", bytes);
  fmt::print("{}",
             recording::stack_text(stacks_.locations(unsteady.stack), *source_.locations, style));
}

void LeakReport::print_devices(const Terminal& terminal) const {
  if (leaks_.devices.empty()) return;
  fmt::print("\n{}\n", terminal.paint(Colour::bold, "devices whose memory grows"));
  for (const DeviceGrowth& device : leaks_.devices)
    fmt::print("  {:<8} {}, R² {:.2f}\n", device.device, rate_text(device.growth),
               device.growth.r_squared);
}

void LeakReport::print_processes(const Terminal& terminal) const {
  if (processes_.size() < 2) return;
  fmt::print("\n{}\n", terminal.paint(Colour::bold, "processes, this one first"));
  fmt::print("{}\n", terminal.paint(Colour::dim, fmt::format("  {:>7}  {:>5}  {:<16} {:>10} {:>12}"
                                                             "  {}",
                                                             "pid", "rank", "program", "grew",
                                                             "a second", "leaks")));
  for (const ProcessLeaks& process : processes_) {
    const Leaks& leaks = process.leaks;
    fmt::print(
        "  {:>7}  {:>5}  {:<16} {:>10} {:>12}  {}\n", process.pid,
        process.rank.empty() ? "-" : clip(process.rank, 5), clip(process.program, 16),
        bytes_text(leaks.bytes()), bytes_text(leaks.bytes_per_second()),
        leaks.has_enough_checkpoints() ? count_text(leaks.leaks.size()) : "too early to tell");
  }
}

void LeakReport::print(std::size_t top, bool full, const Terminal& terminal) const {
  print_summary(terminal);
  const std::size_t shown = std::min(top, leaks_.leaks.size());
  const recording::StackStyle style{terminal, 6, full, source_.lines.get()};
  for (std::size_t i = 0; i < shown; ++i) print_leak(i + 1, leaks_.leaks[i], style);
  if (leaks_.unsteady) print_unsteady(*leaks_.unsteady, style);
  if (shown < leaks_.leaks.size()) {
    fmt::print("\n  and {}: --top N\n",
               plural(leaks_.leaks.size() - shown, "smaller leak", "smaller leaks"));
  }
  print_devices(terminal);
  print_processes(terminal);
  sections::print_notes(sections::notes_of(source_), terminal);
}

}  // namespace oomrec::tools::findings
