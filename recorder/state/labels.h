// What the program says it is at work on: labels, such as a step or a request.
//
// A label is an outer frame of every stack made under it, further in than the thread's group: so
// blocks, events, failures and checkpoints carry it at no cost of their own. Labels nest. A thread
// that has none of its own is at work for the thread that pushed last (PyTorch's backward threads),
// and is under that one's innermost label. At most 4,096 different texts; more are `other`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct ThreadState;

inline constexpr std::uint32_t kMaxContexts = 16;    // deeper ones are not told apart
inline constexpr std::uint32_t kMaxLabels = 4096;    // different texts
inline constexpr std::size_t kLabelTextBytes = 256;  // longer texts are cut

// The label of threads without one of their own: StringId, and above it who pushed it (tid). 0:
// none.
inline constinit std::atomic<std::uint64_t> g_common_label{0};

// A nested call whose end is missing, or one end too many, does no harm.
void push_context(InHook, std::string_view text) noexcept;
void pop_context(InHook) noexcept;

// The thread, which has no label of its own, is under the common one from now on.
void adopt_common_label(InHook, ThreadState&) noexcept;

// The innermost label that the stack `node` was made under; empty: none.
std::string_view label_of(std::uint32_t node) noexcept;

// A fork's child: while the parent's session can still be read, what the forking thread was under
// is kept, and given to the child's first thread once that has a session.
void save_labels(InHook) noexcept;
void restore_labels(InHook, ThreadState&) noexcept;

}  // namespace oomrec::recorder
