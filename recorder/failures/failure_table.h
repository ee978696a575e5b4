// What is remembered of refusals: each kind with its evidence in `failures`, and the last of all,
// should the process end with it.
//
// A kind is known by stack, API and space; a repeat only counts.
#pragma once

#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// The entry of the refusal in `failures`, also in refusal.entry; 0: there is no room. `first`: none
// of its kind was known. Its evidence is read anew where `fresh` is set; else a flood of new stacks
// shares what was read.
std::uint32_t remember(InHook, Refusal&, bool fresh, bool& first) noexcept;

// An entry of its own for a refusal that has none, as far as there is room.
void enter_unknown(InHook, Refusal&) noexcept;

// An earlier one of its kind is told as one that did no harm, and this one is another: it gets an
// entry of its own, in which its repeats are counted.
void enter_anew(InHook, Refusal&) noexcept;

// The entry that tells the last refusal: its own, unless that tells an earlier one of the same
// kind.
std::uint32_t enter_last(InHook, const Refusal& last, bool told) noexcept;

// What was refused did no harm: the next refusal of its kind may be another story.
void settle(Refusal&) noexcept;

// The last that was no probe; time_ns is 0 where nothing was refused, or it cannot be had.
Refusal last_refusal() noexcept;

// The newest refusal of all, if it is later than number `since`: for an exception that is raised on
// another thread than the one that was refused. Each is taken once, not where an exception came of
// it, and only while it can be what ends the program.
bool take_newest(std::uint32_t since, Refusal& newest) noexcept;

// An exception came of it.
void note_raised(const Refusal&) noexcept;

// Our limit refused, neither the system nor a rule of --fail.
bool refused_by_limit(const Refusal&) noexcept;

// After a fork.
void forget_known_refusals(InHook) noexcept;

}  // namespace oomrec::recorder
