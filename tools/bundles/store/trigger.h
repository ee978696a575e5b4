// Why a bundle would be written of a recording that is in none: read from its session alone.
#pragma once

#include <cstdint>

#include "common/session/view.h"
#include "common/session/vocabulary.h"

namespace oomrec::tools::bundles {

// The latest failed request that is no probe: the one that was repeated last. False: there is none.
bool last_refusal(const session::View& view, std::uint32_t& index, session::Failure& failure);

// Whether a bundle holds it: this request itself, not a repeat after the program had recovered.
bool is_told(const session::Failure& failure);

session::State state_of(const session::View& view);

// The signal whose handler recorded it; 0: none did.
int crash_signal(const session::View& view);

// A crash follows from a failed request, and its process could not write that down any more.
bool crash_is_due(const session::View& view);

Trigger trigger_of(const session::Failure& failure);
Trigger trigger_of(const session::View& view);

}  // namespace oomrec::tools::bundles
