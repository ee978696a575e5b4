// Rows for stacks that were forgotten: what they had allocated in their time still counts, for the
// line that asked for it, and so do their rows in checkpoints.
//
// A row is a holder of a stack with one frame: the innermost one of Python, or else the innermost.
// A row that itself is forgotten goes to the row of all, which stays.
#pragma once

#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"
#include "recorder/live/holder_table.h"

namespace oomrec::recorder {

// Whether it is the node of such a row.
bool is_forgotten_row(std::uint32_t node) noexcept;

// The node for forgotten stacks like this one, which is in use. 0: there is no memory. Without a
// new row, a line that has none goes to the row of all.
enum class NewRow : bool { none, added };
std::uint32_t forgotten_node_of(InHook, std::uint32_t node, NewRow) noexcept;

// The holder of forgotten_node_of() in this space. 0: there is no memory.
std::uint32_t forgotten_holder_of(InHook, std::uint32_t node, Space, Api) noexcept;

void reset_forgotten_rows_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
