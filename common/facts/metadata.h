// "metadata.json": what happened. Its sections are described in their own headers.
#pragma once

#include <array>
#include <concepts>

#include "common/facts/describe.h"

namespace oomrec::facts {

// The members that are completed later (common/bundle/complete.cpp).
inline constexpr std::string_view kOutcomeKey = "outcome", kContextKey = "context",
                                  kCustomMetadataKey = "custom_metadata";
inline constexpr auto kExceptionKeys = std::to_array<std::string_view>(
    {"exception_type", "exception_module", "exception_message", "exception_traceback"});

// What derives from it has the members that describe() names.
struct Metadata {};

// complete() must find the members from "outcome" to "cgroup_account" in this order near the front,
// and the request's counts in the first 64 KiB. The program's own texts come last, because they may
// be long.
template <std::derived_from<Metadata> Fact>
struct Section<Fact> {
  static constexpr std::string_view key = "metadata";
  static constexpr std::string_view meaning = "what happened";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& of) {
    v.field("schema_version", 2U, "2");
    v.field("reason", TextOrNull{of.reason, "facts.json#/$defs/trigger"},
            "the trigger, as in manifest.json");
    v.field(kOutcomeKey, TextOrNull{of.outcome, "definitions.json#/$defs/outcome"},
            "`running` at first, and updated later: `recovered`, `exited N`, `signal N`, "
            "`oom_killed` or `unknown`");
    v.section(of.verdict);
    v.section(of.crash);
    v.section(of.verdict.limit);
    v.section(of.limit_reserve);
    v.section(of.account);
    v.section(of.request);
    v.field("failure", of.failure,
            "the entry of the recording's table `failures` behind `request`; `null` if there is "
            "none");
    v.section(of.child);
    v.field("backend", TextOrNull{of.backend, "definitions.json#/$defs/backend"},
            "as in manifest.json");
    v.field("captured_event_count", of.captured_event_count, "the same as `event_count` there");
    v.field(kContextKey, of.context,
            "the text given with a requested bundle or an exception, else the failing thread's "
            "innermost label (`oomrec_context_push`); else `null`");
    for (std::size_t i = 0; i < kExceptionKeys.size(); ++i)
      v.field(kExceptionKeys[i], of.exception[i],
              "from the program (`oomrec_exception`, `oomrec_dump_with`), at most 64 KiB; else "
              "`null`");
    v.field(kCustomMetadataKey, of.custom_metadata,
            "the program's own object, at most 64 KiB; it and `exception_*` are added to a "
            "failure's bundle once the program has its exception");
  }
};

}  // namespace oomrec::facts
