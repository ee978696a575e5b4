// The symbolized stacks of a recording: a trie of locations, in which stacks with equal names are
// one.
//
// CPython reaches the same code through different interpreter functions the first times a line runs
// than later (specialized instructions, vectorcall). To the program these are the same call, so
// stacks are compared, and figures summed, without the interpreter's native functions. The user may
// reduce them further, to one kind of frames.
//
// Stacks are symbolized on demand. There may be millions: each costs 32 bytes, and finding a callee
// compares few siblings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::recording {

using StackId = std::uint32_t;  // 0: the empty stack

// Which frames of a stack count, if it runs Python code. Notes always do.
enum class Frames : std::uint8_t {
  both,    // all but the interpreter's native ones
  python,  // lines of Python, without its import system, and the program's own native functions
  native,  // all but Python's
};
inline constexpr std::array<std::string_view, 3> kFramesNames{"both", "python", "native"};

// Whether a location counts in a stack that runs Python.
bool counts(const Location& location, const Locations& locations, Frames frames);

// `name`: one of kFramesNames; else Frames::both.
Frames frames_named(std::string_view name);

// `asked`: the value of --frames. Empty: lines of Python, if the recorded process ran it.
Frames frames_of(const Recording& recording, std::string_view asked = {});

class Stacks {
 public:
  Stacks(const Recording& recording, Locations& locations, Frames frames = Frames::both);

  // The stack of a node of the recording, also of one that was added after it was opened.
  StackId of_node(std::uint32_t node);

  // Nodes may be those of other stacks by now, of a living process (Header::forgotten_stacks).
  void forget_numbers();

  // The stack with the chosen frames only; itself if it runs no Python code, or if none were left.
  StackId reduced(StackId stack) const;

  // The reduced stack without recursion: of functions that call themselves, also by way of others,
  // each is there once, with its innermost line. So what a function holds at all depths is one
  // figure.
  StackId without_recursion(StackId stack);

  bool runs_script(StackId stack) const { return entries_[stack].runs_script; }

  StackId parent(StackId stack) const { return entries_[stack].parent; }  // one frame further out
  LocationId innermost(StackId stack) const { return entries_[stack].location; }
  std::size_t size() const { return entries_.size(); }  // parents have lower numbers

  std::vector<LocationId> locations(StackId stack) const;  // innermost first

 private:
  struct Entry {
    StackId parent;
    LocationId location;
    StackId reduced;
    StackId first_child;   // 0: none
    StackId next_sibling;  // 0: none
    bool runs_script;
  };
  // Callees beyond this number are found by hash.
  static constexpr unsigned kListed = 16;

  bool has_node(std::uint32_t node);
  bool is_left_out(LocationId id);
  std::uint32_t function_of(LocationId id);
  StackId without_last_cycle(StackId stack);
  // Of a runtime's functions that commit a part of its heap: that it is this heap, below the
  // labels. Who needed the memory is not on the stack: a collector's threads mostly, or Go's own
  // stack. 0: of no such functions.
  StackId managed_heap_of(StackId stack);
  StackId child(StackId parent, LocationId location);
  StackId new_child(StackId parent, LocationId location);

  const Recording& recording_;
  Locations& locations_;
  const Frames frames_;
  enum class Kept : std::uint8_t { unknown, kept, left_out };
  std::vector<Kept> kept_;  // by location
  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, StackId> unlisted_;  // by parent and location
  std::vector<std::uint32_t> functions_;  // by location: equal numbers are one function; 0: unknown
  std::unordered_map<std::string, std::uint32_t> function_numbers_;
  std::vector<StackId> without_recursion_;  // by reduced stack; 0: unknown
  std::unordered_set<StackId> heaps_;       // that managed_heap_of() has found
  std::vector<StackId> of_node_;
  std::vector<bool> is_cached_;                                   // in of_node_
  std::vector<std::pair<std::uint32_t, std::uint64_t>> missing_;  // scratch: nodes and frames
};

// Sum over stacks in one space that are equal once they are reduced.
struct StackFigures {
  StackId stack = 0;  // the largest of them
  Space space = Space::heap;
  bool estimated = false;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t live_bytes = 0;                      // at the end what it was given; else `bytes`
  std::optional<std::uint64_t> resident_bytes = {};  // HolderFigures::resident_bytes, at the end
  std::uint32_t depths = 1;  // of a recursion: how many reduced stacks it sums up
};

// Live at the end, at the peak; ever allocated. The end by HolderFigures::weight_bytes().
enum class At : std::uint8_t { end, peak, ever };
inline constexpr std::array<std::string_view, 3> kAtNames{"end", "peak", "ever"};

// Whether stacks that differ only in the depth of a recursion are one.
enum class Recursion : std::uint8_t { kept, collapsed };

// Holders merged by space and reduced stack. Largest first, without empty ones.
std::vector<StackFigures> merged(const std::vector<HolderFigures>& holders, Stacks& stacks, At at,
                                 Recursion recursion = Recursion::kept);

// The figures of a stack in all the spaces of some rows.
struct StackSum {
  StackFigures figures;       // stack and space of the largest row
  std::vector<Space> spaces;  // of the largest first
};

// `rows`: as of merged(), without recursion. Largest first.
std::vector<StackSum> summed_over_spaces(const std::vector<StackFigures>& rows, Stacks& stacks);

}  // namespace oomrec::tools::recording
