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
void start_fault_injection(const char* text) noexcept;

// Whether there are any rules, and whether one is for `operator new`.
bool has_fault_rules() noexcept;
bool has_new_rules() noexcept;

// This thread's next request of the heap is made by an `operator new`.
void announce_new_call() noexcept;
// The same request again: an `operator new` that a rule refused is made once more, by a library.
void fail_new_again() noexcept;
// On this thread: what the shim itself asks of the loader is never refused.
void pause_injection(bool paused) noexcept;

// The number of the rule that refuses this request, from 1; 0: none does.
std::uint8_t failing_rule(InHook, const Request&) noexcept;

// A rule's text in the session; 0 for rule 0.
session::StringId rule_text(InHook, std::uint8_t rule) noexcept;

// After a fork.
void reset_fault_injection_after_fork() noexcept;

}  // namespace oomrec::recorder
