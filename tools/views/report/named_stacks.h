// The stacks of a report: a trie of locations. The rank, thread group and label of a stack are
// separate from it.
//
// In a recording these three are the outermost nodes of a stack, so that they cost nothing per
// event. In a report the user selects by them, and graphs merge stacks that differ only in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/recording/symbolize/locations.h"
#include "tools/recording/symbolize/source_lines.h"
#include "tools/views/report/container.h"

namespace oomrec::tools::views {

// The distinct texts of a report. The page refers to them by number.
class TextTable {
 public:
  TextTable();

  // The number of `text`, made printable and cut at a length beyond any real name.
  std::uint32_t id(std::string_view text);

  const std::vector<std::string>& texts() const { return texts_; }  // the first is empty

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

struct NamedStack {
  std::uint32_t node = 0;   // of the trie; 0: the empty stack
  std::uint16_t group = 0;  // 0: unknown
  std::uint16_t label = 0;  // nested labels: "epoch 3 / step 12"; 0: none
  std::uint32_t rank = 0;   // 1 + the rank, in a recording of many; 0: none
};

// The trie of all recordings of a report.
class StackTrie {
 public:
  std::uint32_t child(std::uint32_t parent, std::uint32_t location);

  // The locations of the recordings are consecutive. A recording's locations begin at the
  // location_count() before it, and are added after all its stacks. `lines`: of their source code;
  // nullptr: none.
  std::uint32_t location_count() const { return static_cast<std::uint32_t>(functions_.size()); }
  void add_locations(const recording::Locations& locations, recording::SourceLines* lines);

  // The number of a text; 0 once there are too many (a forged recording).
  std::uint16_t group(std::string_view text);
  std::uint16_t label(std::string_view text);

  const std::vector<std::string>& groups() const { return groups_.texts(); }
  const std::vector<std::string>& labels() const { return labels_.texts(); }
  const std::vector<std::string>& texts() const { return texts_.texts(); }

  // Adds nodes and locations. Parents have lower numbers than their children.
  void add_to(Container& container) const;

 private:
  std::vector<std::uint32_t> parents_{0}, node_locations_{0};
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  // by parent and location
  // Adds the lines around a location's. The number of the excerpt from 1 on; 0: none.
  std::uint32_t add_excerpt(const recording::Location& location, recording::SourceLines& lines);

  TextTable groups_, labels_, texts_;
  std::vector<std::uint32_t> functions_, files_, line_numbers_, modules_, sources_;
  std::vector<std::uint8_t> kinds_;
  std::vector<std::uint32_t> excerpts_;  // by location
  // By excerpt: the number of its first line, and the end of its lines in excerpt_texts_.
  std::vector<std::uint32_t> excerpt_first_, excerpt_end_;
  std::vector<std::uint32_t> excerpt_texts_;
};

// The stacks of one recording, added to the trie as they are used.
class NamedStacks {
 public:
  NamedStacks(const recording::Recording& recording, recording::Locations& locations,
              StackTrie& trie);

  NamedStack of_node(std::uint32_t node);  // of the recording

 private:
  NamedStack with_frame(NamedStack outer, std::uint64_t frame);

  const recording::Recording& recording_;
  recording::Locations& locations_;
  StackTrie& trie_;
  const std::uint32_t first_location_;
  std::vector<NamedStack> of_node_;
  std::vector<bool> resolved_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> pending_;  // nodes and frames
};

// Whose code a location is, for a report's page.

// Bits of the page's array `place_kind`.
enum LocationKind : std::uint8_t {
  kKindMask = 3,  // Location::Kind
  kInlined = 4,
  kInterpreter = 8,
  kGuessed = 16,
  kAllocator = 32,  // allocators, the C and C++ libraries, drivers: they allocate for their callers
  kImport = 64,     // Python's import machinery
  kOwn = 128,       // the program's own code
};

std::uint8_t kind_bits(recording::LocationId id, const recording::Locations& locations);

// The function, or "libfoo.so+0x1234" without a name.
std::string name_of_location(const recording::Location& location,
                             const recording::Locations& locations);

}  // namespace oomrec::tools::views
