// Episodes: a failed request, and the failures that it brings about while the program deals with
// it (its traceback, its error message, other threads at the same limit). One bundle reports all.
//
// A failure outside of an episode is its root and gets a bundle. The after-shocks get none; their
// entries in `failures` name the root's bundle.
//
// An episode ends when the program has evidently dealt with its root: ten seconds later, or when it
// has gone on to hold much more than at any time since. Dealing with a failure takes little memory.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// Failures of all threads at the same moment have one cause, whatever their sizes.
inline constexpr std::uint64_t kSameMomentNs = 1'000'000'000;

// What the handling of a failure may ask for at once, whatever the root's size: such as an arena
// of Python's for the traceback of a deep recursion.
inline constexpr std::uint64_t kSmallBytes = 2 << 20;

// Whether a failure of `bytes`, `after_ns` after an unresolved `root`, follows from it. A request
// as large as the root's, made a while later, is one that the program wants, unless it is small: it
// has recovered. If only its size made the root's request impossible, memory was not short, and a
// possible one that fails has another cause.
bool is_aftershock(const session::Failure& root, std::uint64_t after_ns, std::uint64_t bytes,
                   Space) noexcept;

// Entry `root` in `failures` begins an episode. Injected failures begin none: memory is not short.
void begin_episode(std::uint32_t root) noexcept;

// The root's kind has failed again, with so much held.
void repeat_root(std::uint64_t now_ns, std::int64_t live_bytes) noexcept;

// The root's bundle is written: its thread goes on only now.
void continue_episode(std::uint64_t now_ns) noexcept;

// Now the process holds so much (heap + map): called when that has shrunk.
void lower_least_live_bytes(std::int64_t bytes) noexcept;

// From here on growth is no longer what the handling of a failure takes. Beyond the reserve of the
// soft limit, which is for that.
inline constexpr std::int64_t kGoneOnBytes = 32 << 20;

// Whether the process has gone on since the root, and this failure comes from that. At the same
// moment another thread, which was at work before, takes what the root's has freed: that must be
// half of what was held. Not known where an interpreter has a heap of its own (object_heap.h).
//
// A device's failures are handled by freeing and asking again. So the process has gone on only once
// it holds more than at the root, by a sixteenth of the device: JAX asks for twice what it has,
// then for less and less, until it gets a piece of what is free, and works on with that.
bool has_resumed(const FailedRequest&) noexcept;

// The root of the present episode: an entry in `failures`. 0: none.
std::uint32_t root_of_episode() noexcept;

// The root did no harm, or its outcome is known.
void end_episode() noexcept;

// The root's bundle could not be written: its after-shocks have no bundle, either.
void abandon_episode(InHook, std::uint64_t bundle) noexcept;

// Adds a failure without a bundle to the episode, if it belongs there. True also for its repeats.
bool join_episode(InHook, FailedRequest&) noexcept;

// Whether this failure's entry is an after-shock's, of this or an earlier episode.
bool was_aftershock(const FailedRequest&) noexcept;

// Whether this failure is the root of the present episode.
bool is_root(const FailedRequest&) noexcept;

}  // namespace oomrec::recorder
