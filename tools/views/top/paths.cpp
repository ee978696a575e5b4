#include "tools/views/top/paths.h"

#include <fmt/format.h>

#include <algorithm>

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostFrames = 4 * session::kMaxFrames;  // with functions inlined in them

// The file of a place; of native code without one its module's.
std::string file_name(const recording::Place& place, const recording::Places& places) {
  if (place.kind == recording::Place::Kind::note) return place.function;
  if (!place.file.empty()) return place.file;
  return places.module_path(place);
}

// Of functions without a name those of a module are one.
std::string function_key(const recording::Place& place, const recording::Places& places) {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}", static_cast<int>(place.kind), place.function,
                     place.function.empty() ? std::string{} : place.file,
                     places.module_path(place));
}

}  // namespace

Names::Known Names::met(recording::PlaceId id) {
  const recording::Place& place = places_[id];
  const auto [function, new_function] = function_ids_.try_emplace(
      function_key(place, places_), static_cast<std::uint32_t>(functions_.size()));
  if (new_function) functions_.push_back(id);
  std::string name = file_name(place, places_);
  const auto [file, new_file] =
      file_ids_.try_emplace(name, static_cast<std::uint32_t>(files_.size()));
  if (new_file) files_.push_back(std::move(name));
  return {function->second, file->second, tools::recording::telling_of(place, places_)};
}

const Names::Known& Names::known(recording::PlaceId place) {
  while (place >= known_.size())
    known_.push_back(met(static_cast<recording::PlaceId>(known_.size())));
  return known_[place];
}

Paths::Paths(const recording::Stacks& stacks, Names& names, Frames frames)
    : stacks_(stacks), names_(names), frames_(frames), of_stack_{0} {}

bool Paths::is_wanted(const recording::Place& place) const {
  if (frames_ == Frames::merged || place.kind == recording::Place::Kind::note) return true;
  return (place.kind == recording::Place::Kind::python) == (frames_ == Frames::python);
}

PathId Paths::child(PathId parent, recording::PlaceId place) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | place;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<PathId>(entries_.size()));
  if (!is_new) return at->second;
  const recording::PlaceId outer = entries_[parent].subject;
  const bool tells = names_.telling_of(place) >= names_.telling_of(outer);
  Entry entry{parent, place, tells ? place : outer, true, true};
  const std::uint32_t function = names_.function_of(place);
  const std::uint32_t file = names_.file_of(place);
  std::size_t looked_at = 0;  // a forged stack has no end
  for (PathId further = parent; further != 0 && looked_at++ < kMostFrames;
       further = entries_[further].parent) {
    if (names_.function_of(entries_[further].place) == function)
      entry.outermost_of_function = false;
    if (names_.file_of(entries_[further].place) == file) entry.outermost_of_file = false;
    if (!entry.outermost_of_function) break;  // nor of the file, then
  }
  entries_.push_back(entry);
  return at->second;
}

PathId Paths::of(recording::StackId stack) {
  if (frames_ != Frames::native) stack = stacks_.without_interpreter(stack);
  if (of_stack_.size() < stacks_.size()) of_stack_.resize(stacks_.size(), kNotAsked);
  unknown_.clear();
  for (; of_stack_[stack] == kNotAsked; stack = stacks_.parent(stack)) unknown_.push_back(stack);
  PathId path = of_stack_[stack];
  for (auto at = unknown_.rbegin(); at != unknown_.rend(); ++at) {
    const recording::PlaceId place = stacks_.innermost(*at);
    if (is_wanted(names_.places()[place])) path = child(path, place);
    of_stack_[*at] = path;
  }
  return path;
}

std::vector<recording::PlaceId> Paths::places(PathId path) const {
  std::vector<recording::PlaceId> places;
  for (; path != 0; path = entries_[path].parent) places.push_back(entries_[path].place);
  return places;
}

}  // namespace oomrec::tools::views
