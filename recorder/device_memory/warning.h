// A bundle before a device refuses: where the user asked to be warned.
//
// A full device refuses, and the failure has its own bundle; so it is watched only with --warn, as
// --limit is. Once an approach: not again before the device is some percent farther away. How full
// it is only its driver knows, who is asked now and then; in between, what this process has taken
// or given back since is added, to know when to ask, and when it is far again.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Judges how near a device is to refusing, after its figures have changed; writes a bundle where it
// is due. Nanoseconds otherwise. Not under a lock.
void watch_device(InHook, std::uint32_t device) noexcept;
// Whether a look is due out of turn: by what this process has taken since the last it may be near.
bool expects_full(std::uint32_t device) noexcept;
void reset_device_warnings_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
