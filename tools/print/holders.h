// Who holds memory: the rows of a page and of JSON, each with its stack.
//
// Rows are shares of a whole only where they add up. Address space, and PyTorch's tensors, which
// lie inside the memory of a driver or of the heap, are groups of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/analysis/stacks.h"
#include "tools/json.h"
#include "tools/print/stack.h"

namespace oomrec::tools {

struct HolderGroup {
  std::string_view heading;
  std::vector<StackFigures> rows;  // the largest first

  std::uint64_t bytes() const;
};

// What adds up first, also where there is none; then the other groups that there are.
std::vector<HolderGroup> grouped(const std::vector<StackFigures>& rows);

struct HoldersStyle {
  StackStyle stack;
  unsigned top = 0;  // as many rows; 0: those with 1 % or more, 10 at most
};

std::string holders_text(const HolderGroup&, const Stacks&, const Places&, const HoldersStyle&);

// `top` of the group at most.
Json holders_json(const HolderGroup&, const Stacks&, const Places&, std::size_t top);

}  // namespace oomrec::tools
