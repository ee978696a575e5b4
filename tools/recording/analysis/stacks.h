// The symbolized stacks of a recording: a trie of locations, in which stacks with equal names are
// one.
//
// CPython reaches the same code through different interpreter functions the first times a line runs
// than later (specialized instructions, vectorcall). To the program these are the same call, so
// stacks are compared, and figures summed, without the interpreter's native functions.
//
// Stacks are symbolized on demand. There may be millions: each costs 32 bytes, and finding a callee
// compares few siblings.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::recording {

using StackId = std::uint32_t;  // 0: the empty stack

class Stacks {
 public:
  Stacks(const Recording& recording, Locations& locations);

  // The stack of a node of the recording, also of one that was added after it was opened.
  StackId of_node(std::uint32_t node);

  // The stack without the interpreter's native frames; itself if it runs no Python code.
  StackId without_interpreter(StackId stack) const;

  StackId parent(StackId stack) const { return entries_[stack].parent; }  // one frame further out
  LocationId innermost(StackId stack) const { return entries_[stack].location; }
  std::size_t size() const { return entries_.size(); }  // parents have lower numbers

  std::vector<LocationId> locations(StackId stack) const;  // innermost first

 private:
  struct Entry {
    StackId parent;
    LocationId location;
    StackId without_interpreter;
    StackId first_child;   // 0: none
    StackId next_sibling;  // 0: none
    bool runs_python;
  };
  // Callees beyond this number are found by hash.
  static constexpr unsigned kListed = 16;

  bool has_node(std::uint32_t node);
  StackId child(StackId parent, LocationId location);
  StackId new_child(StackId parent, LocationId location);

  const Recording& recording_;
  Locations& locations_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, StackId> unlisted_;  // by parent and location
  std::vector<StackId> of_node_;
  std::vector<bool> is_cached_;                                   // in of_node_
  std::vector<std::pair<std::uint32_t, std::uint64_t>> missing_;  // scratch: nodes and frames
};

// Sum over stacks in one space that are equal without the interpreter's functions.
struct StackFigures {
  StackId stack = 0;  // the largest of them
  Space space = Space::heap;
  bool estimated = false;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

enum class At : std::uint8_t { end, peak, ever };  // live at the end, at the peak; ever allocated
inline constexpr std::array<std::string_view, 3> kAtNames{"end", "peak", "ever"};

// Holders merged by space, and by stack without the interpreter's functions. Largest first, without
// empty ones.
std::vector<StackFigures> merged(const std::vector<HolderFigures>& holders, Stacks& stacks, At at);

}  // namespace oomrec::tools::recording
