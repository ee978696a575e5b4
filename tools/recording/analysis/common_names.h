// Common ids for the stacks of two recordings: equal names give equal ids.
//
// At level `location` a frame is identified by function, file and line; without a name, by its
// module's build-id and offset. Level `symbol` is for different builds and edited sources: a frame
// is identified by its function and file name, without directory and line. There, consecutive
// native frames without a name count as one if they are in the same module.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::recording {

using NameId = std::uint32_t;       // 0: none
using CommonStack = std::uint32_t;  // 0: the empty stack

enum class NameLevel : std::uint8_t { location, symbol };

// The ids, shared by both sides.
class CommonNames {
 public:
  explicit CommonNames(NameLevel level) : level_(level) {}

  NameId of(const Location& location, const Locations& locations);
  CommonStack child(CommonStack parent, NameId name);

  // Whether consecutive frames of this name count as one.
  bool folds(NameId name) const { return folds_[name]; }
  NameId innermost(CommonStack stack) const { return stacks_[stack]; }

 private:
  const NameLevel level_;
  std::unordered_map<std::string, NameId> names_;
  std::vector<bool> folds_{false};
  std::unordered_map<std::uint64_t, CommonStack> children_;  // by parent and name
  std::vector<NameId> stacks_{0};                            // by stack: the innermost name
};

// The common ids of one side's stacks.
class SideStacks {
 public:
  SideStacks(const Stacks& stacks, const Locations& locations, CommonNames& common)
      : stacks_(stacks),
        locations_(locations),
        common_(common),
        cache_(stacks.size(), kNotCached) {}

  // The id of the stack without the interpreter's native functions.
  CommonStack of(StackId stack);

 private:
  static constexpr CommonStack kNotCached = ~CommonStack{0};

  const Stacks& stacks_;
  const Locations& locations_;
  CommonNames& common_;
  std::vector<CommonStack> cache_;  // by stack
};

}  // namespace oomrec::tools::recording
