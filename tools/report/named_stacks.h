// The stacks of a recording as a report has them: a trie of places, and apart from it the group of
// threads and the program's own label that each belongs to.
//
// In a recording both are the outermost nodes of a stack, so that they cost nothing per event; in a
// report they are what to choose by, and stacks that differ in them alone are one in a picture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/report/container.h"
#include "tools/report/text_table.h"
#include "tools/symbolize/places.h"
#include "tools/symbolize/source_lines.h"

namespace oomrec::tools {

struct NamedStack {
  std::uint32_t node = 0;   // of the trie; 0: the empty stack
  std::uint16_t group = 0;  // 0: not known
  std::uint16_t label = 0;  // labels inside of labels: "epoch 3 / step 12"; 0: none
};

class NamedStacks {
 public:
  NamedStacks(const Recording& recording, Places& places);

  NamedStack of_node(std::uint32_t node);  // of the recording

  // Arrays of the nodes and of the places; their texts go to `texts`. `lines`: of the places'
  // source code; nullptr: none.
  void add_to(Container& container, TextTable& texts, SourceLines* lines) const;

  // Of the trie. Parents have lower numbers.
  std::size_t size() const { return entries_.size(); }
  std::uint32_t parent(std::uint32_t node) const { return entries_[node].parent; }
  PlaceId place(std::uint32_t node) const { return entries_[node].place; }
  std::vector<PlaceId> places_of(std::uint32_t node) const;  // innermost first

  const std::vector<std::string>& groups() const { return groups_.texts(); }
  const std::vector<std::string>& labels() const { return labels_.texts(); }

 private:
  struct Entry {
    std::uint32_t parent;
    PlaceId place;
  };
  NamedStack inside(NamedStack outer, std::uint64_t frame);
  std::uint32_t child(std::uint32_t parent, PlaceId place);

  const Recording& recording_;
  Places& places_;
  std::vector<Entry> entries_{{0, 0}};
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  // by parent and place
  TextTable groups_, labels_;
  std::vector<NamedStack> of_node_;
  std::vector<bool> known_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unknown_;  // of_node's: nodes and frames
};

}  // namespace oomrec::tools
