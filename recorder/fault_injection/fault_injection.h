// Requests refused on purpose: which, by the rules of --fail (common/options/fault_rules.h).
//
// Asked by admits() only, before the real function; the recorder's own calls and nested ones never
// come here. A rule's calls are counted for the process, a fork's child begins anew. A stack is
// captured only where a rule names a site; whether a site is on it is found out once a stack.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// `text`: checked rules, which stay where they are; empty: none. Once, before other threads run.
void start_injection(const char* text) noexcept;

// Whether there are any rules, and whether one is for `operator new`.
bool injects() noexcept;
bool injects_into_new() noexcept;

// This thread's next request of the heap is made by an `operator new`.
void announce_new() noexcept;
// The same request again: an `operator new` that a rule refused is made once more, by a library.
void refuse_new_again() noexcept;
// On this thread: what the shim itself asks of the loader is never refused.
void pause_injection(bool paused) noexcept;

// The number of the rule that refuses this request, from 1; 0: none does.
std::uint8_t refusing_rule(InHook, const Request&) noexcept;

// A rule's text in the session; 0 for rule 0.
session::StringId rule_text(InHook, std::uint8_t rule) noexcept;

// After a fork.
void restart_injection() noexcept;

}  // namespace oomrec::recorder
