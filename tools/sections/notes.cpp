#include "tools/sections/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/reading/object_counts.h"
#include "tools/recording/reading/old_memory.h"
#include "tools/recording/symbolize/linked_allocators.h"

namespace oomrec::tools::sections {
namespace {

// PyPy's interpreter is a library, or in a static build the program itself.
bool runs_pypy(const recording::Recording& recording) {
  for (const auto& module :
       session::entries<session::Module>(recording.view(), session::TableId::modules)) {
    const std::string path{recording.text(module.path)};
    const std::string_view name = text::base_name(path);
    if (name.starts_with("libpypy") || name.starts_with("pypy")) return true;
  }
  return false;
}

constexpr std::size_t kTypes = 10;

std::string preexisting_objects(const recording::ObjectCounts& counts) {
  std::string types;
  for (std::size_t i = 0; i < std::min(counts.rows.size(), kTypes); ++i)
    types += fmt::format("{}{} {} in {}", i == 0 ? "" : ", ", counts.rows[i].type,
                         size_text(counts.rows[i].bytes), count_text(counts.rows[i].count));
  return fmt::format(
      "when it was attached to, Python's collector tracked {} of {} types, {} without what they "
      "refer to{}: {}{}",
      plural(counts.objects, "object", "objects"), count_text(counts.types),
      size_text(counts.bytes), counts.is_partial ? " (not all were counted)" : "", types,
      counts.types > kTypes ? ", …" : "");
}

// What dropped events have allocated has no holder. Said where that is most of the heap: less may
// be the allocator's rounding or the error of samples.
std::string dropped_events(const recording::Recording& recording) {
  std::string dropped = fmt::format("{} did not fit into the recording (raise --recording-size)",
                                    plural(recording.header().dropped_events, "event", "events"));
  std::uint64_t held = 0;
  for (const recording::HolderFigures& holder : recording.holders())
    if (holder.space == Space::heap) held += holder.live_bytes;
  const std::uint64_t live = recording.totals(Space::heap).live_bytes;
  if (held >= live / 2) return dropped;
  return fmt::format("{}; of {} live in the heap, {} have no holder", dropped, size_text(live),
                     size_text(live - held));
}

}  // namespace

std::string shares_note(const recording::Recording& recording) {
  if (recording.is_resident_estimated() && recording.weight() == recording::Weight::resident)
    return "holders are ranked by what of them was in memory or in swap. It was killed before "
           "anything "
           "looked at its pages: that is an estimate. All holders together have what the process "
           "had, "
           "and the largest and newest mappings and blocks are taken not to have been touched; the "
           "totals of spaces count what the blocks take up";
  return recording.weight() == recording::Weight::resident
             ? "holders are ranked by what of them is in memory or in swap, and percentages are "
               "shares of that; the totals of spaces count what the blocks take up"
             : "percentages are shares of what the blocks of all holders take up: in the heap with "
               "what is rounded up, and what an alignment keeps free";
}

std::vector<std::string> notes_of(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::Header& header = recording.header();
  std::vector<std::string> notes = source.read_problems;
  const auto add_if = [&](bool condition, auto text) {
    if (condition) notes.push_back(text());
  };
  const auto stored = [&](session::StringId id) { return recording.text(id); };

  add_if(header.heap_note != 0, [&] { return stored(header.heap_note); });
  if (!source.is_job())
    for (std::string& note : linked_allocator_notes(source)) notes.push_back(std::move(note));
  add_if(header.off_reason != 0,
         [&] { return fmt::format("not recorded: {}", stored(header.off_reason)); });
  add_if(header.python.status != 0,
         [&] { return fmt::format("no Python stacks: {}", stored(header.python.status)); });
  add_if(runs_pypy(recording), [] {
    return std::string{
        "no Python stacks: PyPy's frames are not read. Its memory is recorded as that of native "
        "code, objects as the blocks and arenas that they lie in"};
  });
  const session::Python& python = header.python;
  const bool has_pool = python.version_hex != 0 && python.source != session::ObjectSource::malloc;
  const bool has_own_heap = python.source == session::ObjectSource::own_heap;
  add_if(has_pool && python.objects == session::PoolObjects::none, [] {
    return std::string{
        "small Python objects are counted as arenas; to see each one: oomrec run --python-objects"};
  });
  add_if(has_pool && python.objects == session::PoolObjects::sampled, [&] {
    return fmt::format(
        "Python's {}objects (space python) are estimates from samples, one per 2 KiB or more; to "
        "record each one: oomrec run --python-objects",
        has_own_heap ? "" : "small ");
  });
  add_if(has_own_heap && python.objects == session::PoolObjects::sampled, [] {
    return std::string{
        "this Python has a heap of its own (mimalloc). It is a part of space map, and counts "
        "only where resident; sampled about ten times a second"};
  });
  add_if(header.mode == static_cast<std::uint8_t>(Mode::exact) && recording.estimated(), [] {
    return std::string{
        "exact recording fell back to sampling: what was live at once did not fit (raise "
        "--recording-size)"};
  });
  add_if(recording.estimated(), [&] {
    return fmt::format(
        "holders of blocks below {} are estimates from samples, one per {}; totals of {}spaces are "
        "exact",
        size_text(header.large_bytes), size_text(header.interval_bytes),
        has_own_heap ? "other " : "");
  });
  const recording::OldMemory old = recording::old_memory_of(recording.view());
  add_if(old.preexisting, [&] {
    return fmt::format(
        "recorded since `oomrec attach`: [before attaching] is what the heap held then, as one "
        "block{}",
        old.mappings ? ", and private anonymous mappings by their sizes"
                     : "; mappings from before are not counted");
  });
  add_if(old.preexisting && recording.view().count(session::TableId::devices) > 1, [&] {
    return std::string{
        old.devices ? "of a device, [before attaching] is what NVML said that the process used "
                      "then, with its context"
                    : "what the process held on devices before `oomrec attach` counts as used "
                      "by others or by the runtime"};
  });
  add_if(header.preexisting_objects != 0, [&] {
    return preexisting_objects(recording::object_counts_of(stored(header.preexisting_objects)));
  });
  add_if(old.inherited, [] {
    return std::string{
        "this process was forked: what is below [inherited from the parent process] was allocated "
        "before the fork; without a further line it includes the first MiB of its own"};
  });
  add_if(header.dropped_events != 0, [&] { return dropped_events(recording); });
  add_if(header.forgotten_stacks != 0, [&] {
    return fmt::format(
        "{} that held nothing any more {} forgotten; what they had allocated is in [forgotten "
        "stacks]",
        plural(header.forgotten_stacks, "stack", "stacks"),
        header.forgotten_stacks == 1 ? "was" : "were");
  });
  add_if(header.truncated_stacks != 0, [&] {
    return fmt::format(
        "{} cut: no space for more of them, more than {} frames, or the unwinder failed",
        plural(header.truncated_stacks, "stack was", "stacks were"), session::kMaxFrames);
  });
  const std::vector<std::string> newer =
      source.lines != nullptr ? source.lines->newer_files() : std::vector<std::string>{};
  add_if(!newer.empty(), [&] {
    return fmt::format("changed after the process started, so line numbers may be off: {}",
                       fmt::join(newer, ", "));
  });
  const std::vector<std::string> unreadable = source.locations->unreadable_modules();
  add_if(!unreadable.empty(), [&] {
    return fmt::format("not found here, or not the recorded build, so symbols are missing: {}",
                       fmt::join(unreadable, ", "));
  });
  return notes;
}

void print_notes(const std::vector<std::string>& notes, const Terminal& terminal) {
  if (notes.empty()) return;
  fmt::print("\n{}\n", terminal.paint(Colour::bold, "notes"));
  for (const std::string& note : notes) fmt::print("  - {}\n", wrap(printable(note), kColumns, 4));
}

namespace {

constexpr double kNotableShare = 0.05;      // of what all holders weigh
constexpr std::uint64_t kLeast = 1u << 20;  // of a module
constexpr double kNotableHolderShare = 0.01;

// A library's own setting that makes it call malloc.
struct Setting {
  std::string_view library, words;
};
constexpr Setting kSettings[] = {
    {"libarrow.so",
     "ARROW_DEFAULT_MEMORY_POOL=system lets it call malloc, whose blocks are recorded"},
};

bool passes_calls_on(std::string_view file) {
  return file.starts_with("libc.so") || file.starts_with("libc-") || file.starts_with("ld-") ||
         file.starts_with("libpthread") || file.starts_with("liboomrec");
}

// The module that asked for a mapping; empty: unknown, or Python's interpreter.
std::string module_of(const bundles::Source& source, std::uint32_t node) {
  for (const recording::LocationId id : source.locations->of_stack(node)) {
    const recording::Location& location = (*source.locations)[id];
    if (location.kind != recording::Location::Kind::native || location.module == 0) continue;
    const std::string path = source.locations->module_path(location);
    if (passes_calls_on(text::base_name(path))) continue;
    return location.interpreter ? std::string{} : path;
  }
  return {};
}

// By holders that have made an allocator's reservations grow: whose stack had made these.
std::unordered_map<std::uint32_t, std::uint32_t> reserving_nodes(const bundles::Source& source) {
  const session::View& view = source.recording->view();
  std::unordered_map<std::uint32_t, std::uint32_t> nodes;
  session::Holder holder{};
  view.for_each_residency_row([&](const session::ResidencyRow& row) {
    if (row.reserving != 0 && view.read(session::TableId::holders, row.reserving, holder))
      nodes[row.holder] = holder.node;
  });
  return nodes;
}

std::string note_of(const std::string& path, std::uint64_t bytes, double share) {
  const std::vector<std::string_view> allocators = recording::linked_allocators_in(path);
  if (allocators.empty()) return {};
  const std::string_view file = text::base_name(path);
  std::string note = fmt::format(
      "{} has {} linked in: single blocks of it are not recorded. {} ({:.1f} %) of what is held "
      "are "
      "mappings that the allocator made, under the stacks that made it grow",
      file, fmt::join(allocators, " and "), size_text(bytes), share * 100);
  for (const Setting& setting : kSettings)
    if (file.starts_with(setting.library)) note += fmt::format(". {}", setting.words);
  return note;
}

}  // namespace

std::vector<std::string> linked_allocator_notes(const bundles::Source& source) {
  const std::vector<recording::HolderFigures> holders = source.recording->holders();
  std::uint64_t whole = 0;
  for (const recording::HolderFigures& holder : holders)
    if (is_additive(holder.space)) whole += holder.weight_bytes();
  const std::unordered_map<std::uint32_t, std::uint32_t> reserving = reserving_nodes(source);
  std::map<std::string, std::uint64_t> bytes_of;
  for (const recording::HolderFigures& holder : holders) {
    if (holder.space != Space::map || share_of(holder.weight_bytes(), whole) < kNotableHolderShare)
      continue;
    const auto by = reserving.find(holder.entry);
    bytes_of[module_of(source, by != reserving.end() ? by->second : holder.node)] +=
        holder.weight_bytes();
  }
  std::vector<std::pair<std::string, std::uint64_t>> modules{bytes_of.begin(), bytes_of.end()};
  std::ranges::stable_sort(modules,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> notes;
  for (const auto& [path, bytes] : modules) {
    const double share = share_of(bytes, whole);
    if (path.empty() || bytes < kLeast || share < kNotableShare) continue;
    if (std::string note = note_of(path, bytes, share); !note.empty())
      notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace oomrec::tools::sections
