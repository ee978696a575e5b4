// Stacks as a report has them: a trie of places, and apart from it the rank, the group of threads
// and the program's own label that each belongs to.
//
// In a recording these are the outermost nodes of a stack, so that they cost nothing per event; in
// a report they are what to choose by, and stacks that differ in them alone are one in a picture.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/recording/symbolize/places.h"
#include "tools/recording/symbolize/source_lines.h"
#include "tools/views/report/container.h"
#include "tools/views/report/text_table.h"

namespace oomrec::tools::views {

struct NamedStack {
  std::uint32_t node = 0;   // of the trie; 0: the empty stack
  std::uint16_t group = 0;  // 0: not known
  std::uint16_t label = 0;  // labels inside of labels: "epoch 3 / step 12"; 0: none
  std::uint32_t rank = 0;   // 1 + the rank, in a recording of many; 0: none
};

// Of all recordings of a report.
class StackTrie {
 public:
  std::uint32_t child(std::uint32_t parent, std::uint32_t place);

  // Places of recordings follow upon each other: a recording's begin at place_count(), and are
  // added when all of its stacks are there. `lines`: of their source code; nullptr: none.
  std::uint32_t place_count() const { return static_cast<std::uint32_t>(functions_.size()); }
  void add_places(const recording::Places& places, recording::SourceLines* lines);

  // Numbers; 0 once there are more than anybody can tell apart (a forged recording).
  std::uint16_t group(std::string_view text);
  std::uint16_t label(std::string_view text);

  const std::vector<std::string>& groups() const { return groups_.texts(); }
  const std::vector<std::string>& labels() const { return labels_.texts(); }
  const std::vector<std::string>& texts() const { return texts_.texts(); }

  // Nodes, whose parents have lower numbers, and places.
  void add_to(Container& container) const;

 private:
  std::vector<std::uint32_t> parents_{0}, node_places_{0};
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  // by parent and place
  TextTable groups_, labels_, texts_;
  std::vector<std::uint32_t> functions_, files_, line_numbers_, modules_, sources_;
  std::vector<std::uint8_t> kinds_;
};

// Of one of them.
class NamedStacks {
 public:
  NamedStacks(const recording::Recording& recording, recording::Places& places, StackTrie& trie);

  NamedStack of_node(std::uint32_t node);  // of the recording

 private:
  NamedStack inside(NamedStack outer, std::uint64_t frame);

  const recording::Recording& recording_;
  recording::Places& places_;
  StackTrie& trie_;
  const std::uint32_t first_place_;
  std::vector<NamedStack> of_node_;
  std::vector<bool> known_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unknown_;  // of_node's: nodes and frames
};

}  // namespace oomrec::tools::views
