// Tells those who wait (oomrec_wait) that something has happened: a word of the session that grows,
// and is a futex.
//
// It grows with a refusal, a bundle, and when memory passes a percentage that was asked for: of the
// soft limit where totals are published, of everything else on the tick. A percentage is passed
// once: again after memory has fallen some percent below it, which makes the word grow, too. Waking
// costs a system call only where somebody waits.
#pragma once

#include <cstdint>

#include "common/limits/health.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// False: there is no room for another percentage, or it is none (1 to 100).
bool notify_at(InHook, std::uint32_t percent, bool on) noexcept;

// Where totals are published: a load and a comparison, where no percentage of the soft limit is
// near.
void check_news(InHook, std::int64_t grown_bytes) noexcept;

// On the tick: `nearest` of the host's limits, and the devices.
void tell_nearness(InHook, const limit::Nearness& nearest) noexcept;

// The soft limit is another one.
void limit_changed(InHook) noexcept;

// Sets the soft limit; 0: none.
void set_limit(InHook, std::uint64_t bytes) noexcept;

// After a fork: nobody waits in the child, and nobody has asked.
void forget_news(InHook) noexcept;

}  // namespace oomrec::recorder
