#include "tools/report/named_stacks.h"

#include <limits>

#include "tools/report/place_kinds.h"

namespace oomrec::tools {
namespace {

using session::SpecialFrame;
using session::TableId;

// 0 once there are more than anybody can tell apart (a forged recording).
std::uint16_t number_in(TextTable& table, std::string_view text) {
  const std::uint32_t id = table.id(text);
  return id <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(id)
                                                         : std::uint16_t{0};
}

}  // namespace

NamedStacks::NamedStacks(const Recording& recording, Places& places)
    : recording_(recording),
      places_(places),
      of_node_(recording.view().count(TableId::nodes)),
      known_(of_node_.size()) {
  entries_.reserve(of_node_.size());
  children_.reserve(of_node_.size());
}

std::uint32_t NamedStacks::child(std::uint32_t parent, PlaceId place) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | place;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<std::uint32_t>(entries_.size()));
  if (is_new) entries_.push_back({parent, place});
  return at->second;
}

NamedStack NamedStacks::inside(NamedStack outer, std::uint64_t frame) {
  if (session::kind_of(frame) == session::FrameKind::special) {
    const std::string text = recording_.text(session::argument_of(frame));
    switch (session::special_of(frame)) {
      case SpecialFrame::thread_group:
        outer.group = number_in(groups_, text);
        return outer;
      case SpecialFrame::context:
        outer.label =
            number_in(labels_, outer.label == 0 ? text : labels()[outer.label] + " / " + text);
        return outer;
      default:
        break;
    }
  }
  const std::vector<PlaceId>& frame_places = places_.of_frame(frame);
  for (auto place = frame_places.rbegin(); place != frame_places.rend(); ++place)
    outer.node = child(outer.node, *place);
  return outer;
}

NamedStack NamedStacks::of_node(std::uint32_t node) {
  // Outwards to a node that is known, then back in.
  unknown_.clear();
  session::Node entry{};
  NamedStack stack;
  while (node != 0 && node < known_.size()) {
    if (known_[node]) {
      stack = of_node_[node];
      break;
    }
    if (!recording_.view().read(TableId::nodes, node, entry)) break;
    unknown_.emplace_back(node, entry.frame);
    if (entry.parent >= node) break;  // forged: parents are always older
    node = entry.parent;
  }
  for (auto at = unknown_.rbegin(); at != unknown_.rend(); ++at) {
    stack = inside(stack, at->second);
    of_node_[at->first] = stack;
    known_[at->first] = true;
  }
  return stack;
}

std::vector<PlaceId> NamedStacks::places_of(std::uint32_t node) const {
  std::vector<PlaceId> stack;
  for (; node != 0; node = entries_[node].parent) stack.push_back(entries_[node].place);
  return stack;
}

void NamedStacks::add_to(Container& container, TextTable& texts, SourceLines* lines) const {
  std::vector<std::uint32_t> parents, node_places;
  for (const Entry& entry : entries_) {
    parents.push_back(entry.parent);
    node_places.push_back(entry.place);
  }
  container.add("node_parent", parents);
  container.add("node_place", node_places);

  std::vector<std::uint32_t> functions, files, numbers, modules, sources;
  std::vector<std::uint8_t> kinds;
  for (PlaceId id = 0; id < places_.size(); ++id) {
    const Place& place = places_[id];
    functions.push_back(texts.id(name_of_place(place, places_)));
    files.push_back(texts.id(place.file));
    numbers.push_back(place.line);
    modules.push_back(texts.id(places_.module_path(place)));
    sources.push_back(lines != nullptr ? texts.id(lines->of(place)) : 0);
    kinds.push_back(kind_bits(id, places_));
  }
  container.add("place_function", functions);
  container.add("place_file", files);
  container.add("place_line", numbers);
  container.add("place_source", sources);
  container.add("place_module", modules);
  container.add("place_kind", kinds);
}

}  // namespace oomrec::tools
