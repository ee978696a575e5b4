// Labels: what the program says it is working on, such as a step or a request.
//
// A label is an outer frame of every stack captured under it, just inside the thread's group. So
// blocks, events, failures and checkpoints carry it at no cost. Labels nest. A thread without a
// label of its own works for the thread that pushed last (PyTorch's backward threads), and has that
// one's innermost label. At most 4,096 different texts; any more become `other`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct ThreadState;

inline constexpr std::uint32_t kMaxContexts = 16;    // deeper ones count as the innermost of these
inline constexpr std::uint32_t kMaxLabels = 4096;    // different texts
inline constexpr std::size_t kLabelTextBytes = 256;  // longer texts are cut

// The label of threads without one: its StringId, above that the tid of who pushed it. 0: none.
inline constinit std::atomic<std::uint64_t> g_common_label{0};

// A missing pop, or one too many, does no harm.
void push_context(InHook, std::string_view text) noexcept;
void pop_context(InHook) noexcept;

// Puts a thread without a label of its own under the common one.
void adopt_common_label(InHook, ThreadState&) noexcept;

// The innermost label of the stack `node`; empty: none.
std::string_view label_of(std::uint32_t node) noexcept;

// A fork's child saves the labels of the forking thread while it can still read the parent's
// session, and restores them for its first thread once it has a session.
void save_labels(InHook) noexcept;
void restore_labels(InHook, ThreadState&) noexcept;

}  // namespace oomrec::recorder
