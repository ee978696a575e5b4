// The stacks of the live view, reduced to one kind of frames: a trie whose entries have what sums
// by function and by file need. Parents have lower numbers than their children.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"
#include "tools/recording/analysis/statistics.h"

namespace oomrec::tools::views {

// Numbers the functions and files of locations. All lines of a function have the same number.
class Names {
 public:
  explicit Names(const recording::Locations& locations) : locations_(locations) {}

  // Numbers from 1 on; 0 belongs to location 0.
  std::uint32_t function_of(recording::LocationId location) { return entry(location).function; }
  std::uint32_t file_of(recording::LocationId location) { return entry(location).file; }
  recording::Relevance relevance_of(recording::LocationId location) {
    return entry(location).relevance;
  }

  std::size_t functions() const { return functions_.size(); }
  std::size_t files() const { return files_.size(); }
  recording::LocationId location_of_function(std::uint32_t function) const {
    return functions_[function];
  }
  const std::string& file(std::uint32_t file) const { return files_[file]; }  // as recorded

  const recording::Locations& locations() const { return locations_; }

 private:
  struct Entry {
    std::uint32_t function, file;
    recording::Relevance relevance;
  };
  const Entry& entry(recording::LocationId location);  // cached
  Entry resolve(recording::LocationId location);

  const recording::Locations& locations_;
  std::vector<Entry> entries_{{0, 0, recording::Relevance::little}};
  std::vector<recording::LocationId> functions_{0};  // a location of each
  std::vector<std::string> files_{std::string{}};
  std::unordered_map<std::string, std::uint32_t> function_ids_, file_ids_;
};

using PathId = std::uint32_t;                      // 0: the empty path
inline constexpr PathId kUnresolved = ~PathId{0};  // not computed yet

class Paths {
 public:
  Paths(const recording::Stacks& stacks, Names& names, recording::Frames frames);

  // The path of a stack. If the stack runs Python code, only frames of the chosen kind are in it,
  // as recording::Stacks reduces stacks.
  PathId of(recording::StackId stack);

  struct Entry {
    PathId parent;
    recording::LocationId location;
    recording::LocationId subject;  // the most relevant location: see subjects_of()
    bool outermost_of_function;     // no caller is in the same function
    bool outermost_of_file;
  };
  const Entry& operator[](PathId path) const { return entries_[path]; }
  std::size_t size() const { return entries_.size(); }

  std::vector<recording::LocationId> locations(PathId path) const;  // innermost first

 private:
  PathId of(recording::StackId stack, bool is_reduced);
  PathId child(PathId parent, recording::LocationId location);

  const recording::Stacks& stacks_;
  Names& names_;
  recording::Frames frames_;
  std::vector<Entry> entries_{{0, 0, 0, false, false}};
  // By stack, or kUnresolved: of whole stacks, and of reduced ones.
  std::array<std::vector<PathId>, 2> of_stack_;
  std::unordered_map<std::uint64_t, PathId> children_;  // by parent and location
  std::vector<recording::StackId> pending_;
};

}  // namespace oomrec::tools::views
