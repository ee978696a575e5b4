#include "tools/recording/analysis/common_names.h"

#include <fmt/format.h>

#include <string_view>

#include "common/text/text.h"

namespace oomrec::tools::recording {
namespace {

using text::base_name;

std::string place_key(const Place& place, const Places& places) {
  const std::string file = place.file.empty() ? places.module_path(place) : place.file;
  std::string key = fmt::format("{}\x1f{}\x1f{}\x1f{}", static_cast<int>(place.kind),
                                place.function, file, place.line);
  if (place.function.empty())
    key += fmt::format("\x1f{}\x1f{:x}", places.build_id(place), place.offset);
  return key;
}

// A native function is named with its file only where there is debug information: its name has to
// do.
std::string symbol_key(const Place& place, const Places& places) {
  const std::string module = places.module_path(place);
  const bool native = place.kind == Place::Kind::native;
  const std::string_view from = native ? text::base_name(module) : text::base_name(place.file);
  if (native && !place.function.empty()) return fmt::format("0\x1f{}", place.function);
  return fmt::format("{}\x1f{}\x1f{}", static_cast<int>(place.kind), place.function, from);
}

}  // namespace

NameId CommonNames::of(const Place& place, const Places& places) {
  const std::string key =
      level_ == NameLevel::place ? place_key(place, places) : symbol_key(place, places);
  const auto [at, is_new] = names_.try_emplace(key, static_cast<NameId>(folds_.size()));
  if (is_new) {
    folds_.push_back(level_ == NameLevel::symbol && place.kind == Place::Kind::native &&
                     place.function.empty());
  }
  return at->second;
}

CommonStack CommonNames::child(CommonStack parent, NameId name) {
  const std::uint64_t key = std::uint64_t{parent} << 32 | name;
  const auto [at, is_new] = children_.try_emplace(key, static_cast<CommonStack>(stacks_.size()));
  if (is_new) stacks_.push_back(name);
  return at->second;
}

CommonStack SideStacks::of(StackId stack) {
  stack = stacks_.without_interpreter(stack);
  // Outwards to one that is known, then back in.
  std::vector<StackId> unknown;
  CommonStack common = 0;
  for (; stack != 0; stack = stacks_.parent(stack)) {
    if (known_[stack] != kUnknown) {
      common = known_[stack];
      break;
    }
    unknown.push_back(stack);
  }
  for (auto at = unknown.rbegin(); at != unknown.rend(); ++at) {
    const NameId name = common_.of(places_[stacks_.innermost(*at)], places_);
    const bool same = common_.folds(name) && common_.innermost(common) == name;
    if (!same) common = common_.child(common, name);
    known_[*at] = common;
  }
  return common;
}

}  // namespace oomrec::tools::recording
