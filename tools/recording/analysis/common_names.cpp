#include "tools/recording/analysis/common_names.h"

#include <fmt/format.h>

#include <string_view>

#include "common/text/text.h"

namespace oomrec::tools::recording {
namespace {

std::string location_key(const Location& location, const Locations& locations) {
  const std::string file = location.file.empty() ? locations.module_path(location) : location.file;
  std::string key = fmt::format("{}\x1f{}\x1f{}\x1f{}", static_cast<int>(location.kind),
                                location.function, file, location.line);
  if (location.function.empty())
    key += fmt::format("\x1f{}\x1f{:x}", locations.build_id(location), location.offset);
  return key;
}

// A native function is identified by its name alone: only builds with debug information know its
// source file.
std::string symbol_key(const Location& location, const Locations& locations) {
  const std::string& module = locations.module_path(location);
  const bool native = location.kind == Location::Kind::native;
  const std::string_view from = native ? text::base_name(module) : text::base_name(location.file);
  if (native && !location.function.empty()) return fmt::format("0\x1f{}", location.function);
  return fmt::format("{}\x1f{}\x1f{}", static_cast<int>(location.kind), location.function, from);
}

}  // namespace

NameId CommonNames::of(const Location& location, const Locations& locations) {
  const std::string key = level_ == NameLevel::location ? location_key(location, locations)
                                                        : symbol_key(location, locations);
  const auto [at, is_new] = names_.try_emplace(key, static_cast<NameId>(folds_.size()));
  if (is_new) {
    folds_.push_back(level_ == NameLevel::symbol && location.kind == Location::Kind::native &&
                     location.function.empty());
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
  stack = stacks_.reduced(stack);
  // Outwards to a cached stack, then back in.
  std::vector<StackId> missing;
  CommonStack common = 0;
  for (; stack != 0; stack = stacks_.parent(stack)) {
    if (cache_[stack] != kNotCached) {
      common = cache_[stack];
      break;
    }
    missing.push_back(stack);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    const NameId name = common_.of(locations_[stacks_.innermost(*at)], locations_);
    const bool same = common_.folds(name) && common_.innermost(common) == name;
    if (!same) common = common_.child(common, name);
    cache_[*at] = common;
  }
  return common;
}

}  // namespace oomrec::tools::recording
