// Percentages of the limits that somebody waits for (oomrec_notify): a crossing notifies the
// waiters.
//
// The soft limit's are checked where totals are published, all others on the tick. A percentage is
// crossed once upwards, and again only after memory has fallen some percent below it, which
// notifies, too.
#pragma once

#include <cstdint>
#include <limits>

#include "common/limits/health.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Percent by which memory must fall below a percentage before a crossing is reported again.
inline constexpr unsigned kRearmPercent = 5;
// Live bytes that are never reached.
inline constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

// False: `percent` is not in 1 to 100, or all slots are in use. Adding the same twice takes
// removing it twice.
bool add_threshold(InHook, std::uint32_t percent) noexcept;
bool remove_threshold(InHook, std::uint32_t percent) noexcept;

// Where totals are published: a load and a comparison, unless a percentage of the soft limit is
// near.
void check_soft_limit_thresholds(InHook, std::int64_t grown_bytes) noexcept;

// Where totals are published: keeps account of the reserve beyond the soft limit.
void observe_soft_limit(InHook) noexcept;

// On the tick: all of them, with `nearest` of the host's limits.
void check_thresholds(InHook, const limit::LimitUsage& nearest) noexcept;

// 0: no limit.
void set_soft_limit(InHook, std::uint64_t bytes) noexcept;

// The child starts without thresholds.
void reset_thresholds_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
