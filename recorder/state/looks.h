// Looks at the process' own pages (common/residency/residency.h), and enters in the session which
// part of its holders is touched: what readers rank by after a kill for resident memory.
//
// A look takes 0.3 ms, about 3 us for each mapping of the kernel's, and 20 to 30 ms for each GiB in
// small pages. So there is one with each bundle, and few otherwise (recorder/limits/near_limit.h).
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// How long a look may take (residency::Deadline): of a thread of the program that is merely near a
// limit, and of one that waits for a bundle in any case.
inline constexpr std::uint64_t kBriefLookNs = 50'000'000;
inline constexpr std::uint64_t kLookForBundleNs = 90'000'000;

// Maps memory for it, and unmaps that again. Returns how long it took, in ns. Nothing is entered if
// another thread is looking, or there is no memory.
// What of a reservation is touched counts as live from then on.
std::uint64_t look_at_pages(InHook, std::uint64_t most_ns) noexcept;

// Takes the memory for a first look, so that the launcher can enter one that the process has not
// had time for (tools/recording/live/mapping.h). 12 KiB of the recording.
void prepare_looks(InHook) noexcept;

// In the child of a fork: the parent's thread that is looking does not exist there.
void end_look() noexcept;

}  // namespace oomrec::recorder
