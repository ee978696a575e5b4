#include "tools/views/top/paths.h"

#include <fmt/format.h>

#include <algorithm>

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostFrames = 4 * session::kMaxFrames;  // with inlined functions

// The file of a location; the module of native code without debug information.
std::string file_name(const recording::Location& location, const recording::Locations& locations) {
  if (location.kind == recording::Location::Kind::note) return location.function;
  if (!location.file.empty()) return location.file;
  return locations.module_path(location);
}

// Identifies a function. All functions of a module that have no name share one key.
std::string function_key(const recording::Location& location,
                         const recording::Locations& locations) {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}", static_cast<int>(location.kind), location.function,
                     location.function.empty() ? std::string{} : location.file,
                     locations.module_path(location));
}

}  // namespace

Names::Entry Names::resolve(recording::LocationId id) {
  const recording::Location& location = locations_[id];
  const auto [function, new_function] = function_ids_.try_emplace(
      function_key(location, locations_), static_cast<std::uint32_t>(functions_.size()));
  if (new_function) functions_.push_back(id);
  std::string name = file_name(location, locations_);
  const auto [file, new_file] =
      file_ids_.try_emplace(name, static_cast<std::uint32_t>(files_.size()));
  if (new_file) files_.push_back(std::move(name));
  return {function->second, file->second, tools::recording::relevance_of(location, locations_)};
}

const Names::Entry& Names::entry(recording::LocationId location) {
  while (location >= entries_.size())
    entries_.push_back(resolve(static_cast<recording::LocationId>(entries_.size())));
  return entries_[location];
}

Paths::Paths(const recording::Stacks& stacks, Names& names, recording::Frames frames)
    : stacks_(stacks), names_(names), frames_(frames) {
  of_stack_.fill({0});
}

PathId Paths::child(PathId parent, recording::LocationId location) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | location;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<PathId>(entries_.size()));
  if (!is_new) return at->second;
  const recording::LocationId outer = entries_[parent].subject;
  const bool is_subject = names_.relevance_of(location) >= names_.relevance_of(outer);
  Entry entry{parent, location, is_subject ? location : outer, true, true};
  const std::uint32_t function = names_.function_of(location);
  const std::uint32_t file = names_.file_of(location);
  std::size_t steps = 0;  // bounded: a forged stack may have no end
  for (PathId caller = parent; caller != 0 && steps++ < kMostFrames;
       caller = entries_[caller].parent) {
    if (names_.function_of(entries_[caller].location) == function)
      entry.outermost_of_function = false;
    if (names_.file_of(entries_[caller].location) == file) entry.outermost_of_file = false;
    if (!entry.outermost_of_function) break;  // so it is not the outermost of the file either
  }
  entries_.push_back(entry);
  return at->second;
}

PathId Paths::of(recording::StackId stack) {
  if (!stacks_.runs_script(stack)) return of(stack, false);
  if (frames_ != recording::Frames::native) stack = stacks_.reduced(stack);
  const PathId reduced = of(stack, true);
  return reduced != 0 ? reduced : of(stack, false);
}

PathId Paths::of(recording::StackId stack, bool is_reduced) {
  std::vector<PathId>& of_stack = of_stack_[is_reduced ? 1 : 0];
  if (of_stack.size() < stacks_.size()) of_stack.resize(stacks_.size(), kUnresolved);
  pending_.clear();
  for (; of_stack[stack] == kUnresolved; stack = stacks_.parent(stack)) pending_.push_back(stack);
  PathId path = of_stack[stack];
  for (auto at = pending_.rbegin(); at != pending_.rend(); ++at) {
    const recording::LocationId location = stacks_.innermost(*at);
    if (!is_reduced || recording::counts(names_.locations()[location], names_.locations(), frames_))
      path = child(path, location);
    of_stack[*at] = path;
  }
  return path;
}

std::vector<recording::LocationId> Paths::locations(PathId path) const {
  std::vector<recording::LocationId> locations;
  for (; path != 0; path = entries_[path].parent) locations.push_back(entries_[path].location);
  return locations;
}

}  // namespace oomrec::tools::views
