// Stacks of two recordings under common numbers: equal where they read alike.
//
// At level `place` a frame is its function, file and line; without a name its module's build and
// offset. At level `symbol`, for other builds and edited sources, it is its function and the name
// of its file without directories and lines; native code without a name is its module's, so many
// frames as there are.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::recording {

using NameId = std::uint32_t;       // 0: none
using CommonStack = std::uint32_t;  // 0: the empty stack

enum class NameLevel : std::uint8_t { place, symbol };

// What the numbers stand for; shared by both sides.
class CommonNames {
 public:
  explicit CommonNames(NameLevel level) : level_(level) {}

  NameId of(const Place& place, const Places& places);
  CommonStack child(CommonStack parent, NameId name);

  // Frames that follow each other under this name are one.
  bool folds(NameId name) const { return folds_[name]; }
  NameId innermost(CommonStack stack) const { return stacks_[stack]; }

 private:
  const NameLevel level_;
  std::unordered_map<std::string, NameId> names_;
  std::vector<bool> folds_{false};
  std::unordered_map<std::uint64_t, CommonStack> children_;  // by parent and name
  std::vector<NameId> stacks_{0};                            // by stack: its innermost name
};

// One side's stacks.
class SideStacks {
 public:
  SideStacks(const Stacks& stacks, const Places& places, CommonNames& common)
      : stacks_(stacks), places_(places), common_(common), known_(stacks.size(), kUnknown) {}

  // Of the stack without the interpreter's own functions.
  CommonStack of(StackId stack);

 private:
  static constexpr CommonStack kUnknown = ~CommonStack{0};

  const Stacks& stacks_;
  const Places& places_;
  CommonNames& common_;
  std::vector<CommonStack> known_;
};

}  // namespace oomrec::tools::recording
