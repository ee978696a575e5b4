// Who holds memory: the rows of a page and of JSON, each with its stack.
//
// Rows are shares of a whole only where they add up. Address space, and PyTorch's tensors, which
// lie inside the memory of a driver or of the heap, are groups of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::print {

struct HolderGroup {
  std::string_view heading;
  std::vector<recording::StackFigures> rows;  // the largest first

  std::uint64_t bytes() const;
};

// What adds up first, also where there is none; then the other groups that there are.
std::vector<HolderGroup> grouped(const std::vector<recording::StackFigures>& rows);

struct HoldersStyle {
  recording::StackStyle stack;
  unsigned top = 0;  // as many rows; 0: those with 1 % or more, 10 at most
};

std::string holders_text(const HolderGroup&, const recording::Stacks&, const recording::Places&,
                         const HoldersStyle&);

// `top` of the group at most.
Json holders_json(const HolderGroup&, const recording::Stacks&, const recording::Places&,
                  std::size_t top);

}  // namespace oomrec::tools::print
