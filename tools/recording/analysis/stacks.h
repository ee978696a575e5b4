// The stacks of a recording by name: a trie of places, so that stacks that read alike are one.
//
// A Python line reaches the same code through other functions of the interpreter the first times it
// runs than later (specialized instructions, vectorcall). To the program that is one way, so stacks
// are told apart, and figures added up, without the interpreter's own functions.
//
// Made as it is asked for: only stacks of holders somebody looks at are named. There may be
// millions: one costs 32 bytes, and no look-up beyond its few siblings.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/recording/symbolize/places.h"

namespace oomrec::tools::recording {

using StackId = std::uint32_t;  // 0: the empty stack

class Stacks {
 public:
  Stacks(const Recording& recording, Places& places);

  // The named stack of a node of the recording, also of one that came later.
  StackId of_node(std::uint32_t node);

  // The stack without native frames of the interpreter; itself where it runs no Python code.
  StackId without_interpreter(StackId stack) const;

  StackId parent(StackId stack) const { return entries_[stack].parent; }  // one frame further out
  PlaceId innermost(StackId stack) const { return entries_[stack].place; }
  std::size_t size() const { return entries_.size(); }  // parents have lower numbers

  std::vector<PlaceId> places(StackId stack) const;  // innermost first

 private:
  struct Entry {
    StackId parent;
    PlaceId place;
    StackId without_interpreter;
    StackId first_child;   // 0: none
    StackId next_sibling;  // 0: none
    bool runs_python;
  };
  // Beyond these a stack's callees are looked up by hash.
  static constexpr unsigned kListed = 16;

  bool is_there(std::uint32_t node);
  StackId child(StackId parent, PlaceId place);
  StackId new_child(StackId parent, PlaceId place);

  const Recording& recording_;
  Places& places_;
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, StackId> unlisted_;  // by parent and place
  std::vector<StackId> of_node_;
  std::vector<bool> known_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> unknown_;  // of_node's: nodes and frames
};

// What was held in one space by stacks that are one without the interpreter's functions.
struct StackFigures {
  StackId stack = 0;  // the one that held most
  Space space = Space::heap;
  bool estimated = false;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};

enum class At : std::uint8_t { end, peak, ever };  // held at the end, at the peak, allocated ever

// Holders by stack without the interpreter's functions and by space, the largest first; those that
// hold nothing left out.
std::vector<StackFigures> merged(const std::vector<HolderFigures>& holders, Stacks& stacks, At at);

}  // namespace oomrec::tools::recording
