// Writes a bundle before the process is killed: afterwards it is too late.
//
// The process compares its cgroup's working set with the limit on the tick, and with every MiB or
// more that it allocates or frees. Memory that it allocated but never touched does not count: it
// may never be touched (a runtime's reservation, `sort -S 90%`). But it may become resident without
// another call, so the checks are closer together while there is much of it. A limit that makes
// requests fail (--limit, RLIMIT_AS) is watched only if the user requested it, because the failure
// itself writes a bundle.
//
// A process can also die slowly, by thrashing: the pages it needs keep coming back from the disk.
// The tick reports that once, until the pressure has eased.
#pragma once

#include <cstdint>

#include "common/limits/health.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A session has begun: takes the first sample, and enters the cgroup in the session.
void start_health(InHook) noexcept;

// On the tick.
void check_limits(InHook, std::uint64_t now_ns) noexcept;

// A share of a total has been published: two loads and comparisons, unless a limit may be near. Set
// as Callbacks::published.
void on_published(InHook, std::int64_t share_bytes) noexcept;

// The host's nearest limit, by figures as they are now: some ten microseconds.
limit::LimitUsage sample_nearest(InHook) noexcept;
// The same with the bytes that are live now, and all else as last sampled: nanoseconds.
limit::LimitUsage nearest_cached(InHook) noexcept;

}  // namespace oomrec::recorder
