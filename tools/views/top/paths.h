// The stacks of a view, by one kind of frames: a trie whose entries know what sums of functions and
// files need. Parents have lower numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"
#include "tools/recording/analysis/statistics.h"

namespace oomrec::tools::views {

// What a function or a file is called, by place: lines of one function are one.
class Names {
 public:
  explicit Names(const recording::Places& places) : places_(places) {}

  // Numbers from 1 on; 0 is the place 0's.
  std::uint32_t function_of(recording::PlaceId place) { return known(place).function; }
  std::uint32_t file_of(recording::PlaceId place) { return known(place).file; }
  recording::Telling telling_of(recording::PlaceId place) { return known(place).telling; }

  std::size_t functions() const { return functions_.size(); }
  std::size_t files() const { return files_.size(); }
  recording::PlaceId place_of_function(std::uint32_t function) const {
    return functions_[function];
  }
  const std::string& file(std::uint32_t file) const { return files_[file]; }  // as recorded

  const recording::Places& places() const { return places_; }

 private:
  struct Known {
    std::uint32_t function, file;
    recording::Telling telling;
  };
  const Known& known(recording::PlaceId place);
  Known met(recording::PlaceId place);

  const recording::Places& places_;
  std::vector<Known> known_{{0, 0, recording::Telling::little}};
  std::vector<recording::PlaceId> functions_{0};  // one of each one's places
  std::vector<std::string> files_{std::string{}};
  std::unordered_map<std::string, std::uint32_t> function_ids_, file_ids_;
};

enum class Frames : std::uint8_t { merged, python, native };
inline constexpr std::string_view kFramesNames[] = {"merged", "python", "native"};

using PathId = std::uint32_t;                    // 0: the empty path
inline constexpr PathId kNotAsked = ~PathId{0};  // not asked for yet

class Paths {
 public:
  Paths(const recording::Stacks& stacks, Names& names, Frames frames);

  // The path of a stack: without the interpreter's functions where it runs Python code, and of
  // frames of the wanted kind only.
  PathId of(recording::StackId stack);

  struct Entry {
    PathId parent;
    recording::PlaceId place;
    recording::PlaceId subject;  // what the path is known by: see subjects_of()
    bool outermost_of_function;  // no entry further out is of the same function
    bool outermost_of_file;
  };
  const Entry& operator[](PathId path) const { return entries_[path]; }
  std::size_t size() const { return entries_.size(); }

  std::vector<recording::PlaceId> places(PathId path) const;  // innermost first

 private:
  PathId child(PathId parent, recording::PlaceId place);
  bool is_wanted(const recording::Place& place) const;

  const recording::Stacks& stacks_;
  Names& names_;
  Frames frames_;
  std::vector<Entry> entries_{{0, 0, 0, false, false}};
  std::vector<PathId> of_stack_;                        // kNotAsked: not asked for yet
  std::unordered_map<std::uint64_t, PathId> children_;  // by parent and place
  std::vector<recording::StackId> unknown_;
};

}  // namespace oomrec::tools::views
