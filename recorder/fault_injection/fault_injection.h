// Requests that fail on purpose, by the rules of --fail (common/options/fault_rules.h).
//
// Only admits() applies the rules, before the real function: never to the recorder's own calls or
// to nested ones. A rule counts its calls per process, and restarts in a fork's child. A stack is
// captured only for rules that name a site, and searched for the site once.
#pragma once

#include "common/options/fault_rules.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// `text`: valid rules, not copied; empty: none. Call once, before other threads run.
void start_fault_injection(const char* text) noexcept;

// Whether there are any rules, and whether one is for `operator new`.
bool has_fault_rules() noexcept;
bool has_new_rules() noexcept;

// This thread's next request of the heap comes from an `operator new`.
void announce_new_call() noexcept;
// A library's `operator new` repeats the request that a rule has just failed: fail it again.
void fail_new_again() noexcept;
// While one exists, no request of this thread fails on purpose: the shim itself calls the loader.
class FaultPause {
 public:
  FaultPause() noexcept;
  ~FaultPause();
  FaultPause(const FaultPause&) = delete;
  FaultPause& operator=(const FaultPause&) = delete;
};

// The number of the rule that fails this request, from 1; 0: none does.
std::uint8_t failing_rule(InHook, const Request&) noexcept;

// A rule's text, as a string of the session; 0 for rule 0.
session::StringId rule_text(InHook, std::uint8_t rule) noexcept;

void reset_fault_injection_after_fork() noexcept;

// Whether the site that a rule names is on a stack. `node`: the calling thread's current stack, so
// its modules stay mapped. Cost: a walk over its nodes, and for a native site a search in each
// module of that name.
bool is_site_on_stack(InHook, const options::InjectionRule&, std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
