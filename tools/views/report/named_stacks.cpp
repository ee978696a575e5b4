#include "tools/views/report/named_stacks.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "common/text/frames.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::views {
namespace {

using session::SpecialFrame;
using session::TableId;

constexpr std::uint32_t kLinesAround = 5;           // of source code, before and after a location's
constexpr std::size_t kLongest = 4096;              // text: names of C++ templates can be so long
constexpr std::size_t kMostExcerptLines = 100'000;  // in a report: some 4 MiB, which deflate well

std::uint16_t number_in(TextTable& table, std::string_view text) {
  const std::uint32_t id = table.id(text);
  return id <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(id)
                                                         : std::uint16_t{0};
}

}  // namespace

std::uint32_t StackTrie::child(std::uint32_t parent, std::uint32_t location) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | location;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<std::uint32_t>(parents_.size()));
  if (is_new) {
    parents_.push_back(parent);
    node_locations_.push_back(location);
  }
  return at->second;
}

void StackTrie::add_locations(const recording::Locations& locations,
                              recording::SourceLines* lines) {
  for (recording::LocationId id = 0; id < locations.size(); ++id) {
    const recording::Location& location = locations[id];
    functions_.push_back(texts_.id(name_of_location(location, locations)));
    files_.push_back(texts_.id(location.file));
    line_numbers_.push_back(location.line);
    modules_.push_back(texts_.id(locations.module_path(location)));
    sources_.push_back(lines != nullptr ? texts_.id(lines->of(location)) : 0);
    kinds_.push_back(kind_bits(id, locations));
  }
  if (lines == nullptr) return;
  // The program's own code first, because the number of lines is bounded.
  excerpts_.resize(functions_.size());
  const std::size_t first = functions_.size() - locations.size();
  for (const unsigned own : {unsigned{kOwn}, 0u}) {
    for (recording::LocationId id = 1; id < locations.size(); ++id) {
      if ((kinds_[first + id] & kOwn) == own)
        excerpts_[first + id] = add_excerpt(locations[id], *lines);
    }
  }
}

std::uint32_t StackTrie::add_excerpt(const recording::Location& location,
                                     recording::SourceLines& lines) {
  if (excerpt_texts_.size() >= kMostExcerptLines) return 0;
  const recording::Excerpt excerpt = lines.excerpt_of(location, kLinesAround);
  if (excerpt.lines.empty()) return 0;
  for (const std::string& line : excerpt.lines) excerpt_texts_.push_back(texts_.id(line));
  excerpt_first_.push_back(excerpt.first);
  excerpt_end_.push_back(static_cast<std::uint32_t>(excerpt_texts_.size()));
  return static_cast<std::uint32_t>(excerpt_first_.size());
}

std::uint16_t StackTrie::group(std::string_view text) { return number_in(groups_, text); }
std::uint16_t StackTrie::label(std::string_view text) { return number_in(labels_, text); }

void StackTrie::add_to(Container& container) const {
  container.add("node_parent", parents_);
  container.add("node_place", node_locations_);
  container.add("place_function", functions_);
  container.add("place_file", files_);
  container.add("place_line", line_numbers_);
  container.add("place_source", sources_);
  container.add("place_module", modules_);
  container.add("place_kind", kinds_);
  std::vector<std::uint32_t> excerpts = excerpts_;
  excerpts.resize(functions_.size());
  container.add("place_excerpt", excerpts);
  container.add("excerpt_first", excerpt_first_);
  container.add("excerpt_end", excerpt_end_);
  container.add("excerpt_text", excerpt_texts_);
}

NamedStacks::NamedStacks(const recording::Recording& recording, recording::Locations& locations,
                         StackTrie& trie)
    : recording_(recording),
      locations_(locations),
      trie_(trie),
      first_location_(trie.location_count()),
      of_node_(recording.view().count(TableId::nodes)),
      resolved_(of_node_.size()) {}

NamedStack NamedStacks::with_frame(NamedStack outer, std::uint64_t frame) {
  if (session::kind_of(frame) == session::FrameKind::special) {
    const std::string text = recording_.text(session::argument_of(frame));
    switch (session::special_of(frame)) {
      case SpecialFrame::thread_group:
        outer.group = trie_.group(text);
        return outer;
      case SpecialFrame::context:
        outer.label =
            trie_.label(outer.label == 0 ? text : trie_.labels()[outer.label] + " / " + text);
        return outer;
      case SpecialFrame::rank:
        outer.rank = session::argument_of(frame) + 1;
        return outer;
      default:
        break;
    }
  }
  const std::vector<recording::LocationId>& frame_locations = locations_.of_frame(frame);
  for (auto location = frame_locations.rbegin(); location != frame_locations.rend(); ++location)
    outer.node = trie_.child(outer.node, first_location_ + *location);
  return outer;
}

NamedStack NamedStacks::of_node(std::uint32_t node) {
  // Walks outwards to a resolved node, then resolves those inside it.
  pending_.clear();
  session::Node entry{};
  NamedStack stack;
  while (node != 0 && node < resolved_.size()) {
    if (resolved_[node]) {
      stack = of_node_[node];
      break;
    }
    if (!recording_.view().read(TableId::nodes, node, entry)) break;
    pending_.emplace_back(node, entry.frame);
    if (entry.parent >= node) break;  // forged: parents are always older
    node = entry.parent;
  }
  for (auto at = pending_.rbegin(); at != pending_.rend(); ++at) {
    stack = with_frame(stack, at->second);
    of_node_[at->first] = stack;
    resolved_[at->first] = true;
  }
  return stack;
}

namespace {

// Code of allocators. Compilers copy it into any module, so names count as well as modules.
bool is_allocator(const recording::Location& location, const recording::Locations& locations) {
  return location.kind == recording::Location::Kind::native &&
         (text::is_plumbing(locations.module_path(location)) ||
          recording::is_library_function(location));
}

bool is_own(recording::LocationId id, const recording::Locations& locations) {
  if (id == 0 || locations[id].kind == recording::Location::Kind::note) return false;
  const recording::Interest interest = recording::interests({id}, locations).front();
  return interest == recording::Interest::own_line || interest == recording::Interest::own_function;
}

}  // namespace

std::uint8_t kind_bits(recording::LocationId id, const recording::Locations& locations) {
  const recording::Location& location = locations[id];
  unsigned bits = static_cast<unsigned>(location.kind) & kKindMask;
  if (location.inlined) bits |= kInlined;
  if (location.interpreter) bits |= kInterpreter;
  if (location.guessed) bits |= kGuessed;
  if (is_allocator(location, locations)) bits |= kAllocator;
  if (recording::is_import_machinery(location)) bits |= kImport;
  if (is_own(id, locations)) bits |= kOwn;
  return static_cast<std::uint8_t>(bits);
}

std::string name_of_location(const recording::Location& location,
                             const recording::Locations& locations) {
  if (!location.function.empty() || location.kind != recording::Location::Kind::native)
    return location.function;
  const std::string path = locations.module_path(location);
  if (path.empty())
    return location.offset == 0 ? "" : fmt::format("unknown code+{:#x}", location.offset);
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), location.offset);
}

TextTable::TextTable() { id(""); }

std::uint32_t TextTable::id(std::string_view text) {
  // A character has at most four bytes. Cutting first saves making a long tail printable.
  std::string shown = clip(printable(text.substr(0, 4 * kLongest)), kLongest);
  const auto [at, is_new] =
      ids_.try_emplace(std::move(shown), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(at->first);
  return at->second;
}

}  // namespace oomrec::tools::views
