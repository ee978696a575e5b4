#include "tools/print/linked_allocators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/recording/symbolize/linked_allocators.h"

namespace oomrec::tools::print {
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
  std::map<std::string, std::uint64_t> bytes_of;
  for (const recording::HolderFigures& holder : holders)
    if (holder.space == Space::map && share_of(holder.weight_bytes(), whole) >= kNotableHolderShare)
      bytes_of[module_of(source, holder.node)] += holder.weight_bytes();
  std::vector<std::pair<std::string, std::uint64_t>> modules{bytes_of.begin(), bytes_of.end()};
  std::stable_sort(modules.begin(), modules.end(),
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

}  // namespace oomrec::tools::print
