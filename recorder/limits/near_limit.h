// A bundle before the kill: whoever passes a limit that kills gets no chance to write one.
//
// On the tick, and with each block of a MiB or more, the process looks how near it is to its
// cgroup's limit. Memory is often touched long after it was allocated, with no hook in between: so
// what is live but not yet resident counts as used. A limit whose crossing is refused (--limit,
// RLIMIT_AS) is watched where the user asked for it: the refusal has its own bundle.
//
// The other way to die slowly is to thrash: pages that are needed come back from the disk, and
// everybody waits. That is told on the tick, once per time of need.
#pragma once

#include <cstdint>

#include "common/limits/health.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A session has begun: the first look, and which cgroup it is.
void begin_health(InHook) noexcept;

// On the tick.
void watch_limits(InHook, std::uint64_t now_ns) noexcept;

// A share of a total has been published. A load and a comparison or two, unless a limit may be
// near. Set as Callbacks::published.
void on_published(InHook, std::int64_t share_bytes) noexcept;

// The host's limit that is nearest, by figures as they are now: some ten microseconds.
limit::Nearness nearest_now(InHook) noexcept;
// The same with what is live now, and all else as it was seen last: nanoseconds.
limit::Nearness nearest_as_known(InHook) noexcept;

// After a fork.
void forget_limits(InHook) noexcept;

}  // namespace oomrec::recorder
