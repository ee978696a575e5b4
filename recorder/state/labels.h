// Labels: the program's names for its work, such as a step or a request.
//
// A label is an outer frame of every stack captured under it, just inside the thread's group. So
// blocks, events, failures and checkpoints carry it at no cost. Labels nest. A thread that pushed
// no label (PyTorch's backward threads) is taken to work for the thread that pushed last, and gets
// that one's innermost label. A label that no stack has any more is forgotten; if more than
// kMaxLabels are in use, further ones become `other`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct ThreadState;

inline constexpr std::uint32_t kMaxContexts = 16;  // deeper ones count as the innermost of these
inline constexpr std::uint32_t kMaxLabels = 32 * 1024;  // in use: more than a ring has events
inline constexpr std::uint32_t kManyLabels = 2048;      // some should be forgotten
inline constexpr std::size_t kLabelTextBytes = 256;     // longer texts are cut

// The label of threads that pushed none: its StringId, and above that the tid of the thread that
// pushed it. 0: none.
inline constinit std::atomic<std::uint64_t> g_common_label{0};

// A missing or superfluous pop does no harm.
void push_context(InHook, std::string_view text) noexcept;
void pop_context(InHook) noexcept;

// Applies the common label to a thread that pushed none.
void adopt_common_label(InHook, ThreadState&) noexcept;

// The labels that the lane's last thread left; its roots are not needed any more.
void release_roots(ThreadState&) noexcept;

// The innermost label of the stack `node`; empty: none.
std::string_view label_of(std::uint32_t node) noexcept;

// In a round of forgetting: looks at the `most` labels from `at` on, which is raised. True: that
// was the last one.
bool forget_idle_labels(InHook, std::uint32_t& at, std::uint32_t most) noexcept;

// A fork's child saves the labels of the forking thread while it can still read the parent's
// session, and restores them for its first thread once it has a session.
void save_labels(InHook) noexcept;
// Forgets all labels, with the session that has their texts.
void forget_labels() noexcept;
void restore_labels(InHook, ThreadState&) noexcept;

}  // namespace oomrec::recorder
