// "verdict" of metadata.json: why the process died, and the evidence. common/verdict/ finds it.
#pragma once

#include <cstring>

#include "common/facts/limit.h"

namespace oomrec::facts {

struct Verdict {
  static constexpr unsigned kMaxEvidence = 12;

  VerdictCode code = VerdictCode::unknown;
  Certainty certainty = Certainty::possible;
  char summary[256] = {};
  char evidence[kMaxEvidence][320] = {};
  unsigned evidence_count = 0;
  Limit limit;  // a section of its own

  // Whether the code claims a cause, which the evidence may or may not prove.
  bool has_certainty() const noexcept {
    return code != VerdictCode::unknown && code != VerdictCode::requested &&
           code != VerdictCode::simulated;
  }
};

template <>
struct Section<Verdict> {
  static constexpr std::string_view key = "verdict";
  static constexpr std::string_view meaning = "why the process died, or what happened to it";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& verdict) {
    v.field("code", named(verdict.code, kVerdictNames), "below");
    v.field("certainty",
            known_if(verdict.has_certainty(), named(verdict.certainty, kCertaintyNames)),
            "how far the evidence carries the verdict: `possible`, it does not contradict it, nor "
            "does it exclude another cause; `likely`, it points to this cause and to no other; "
            "`proven`, it names the cause. `null` for a verdict that claims none");
    v.field("summary", Sentence{verdict.summary}, "for people");
    v.field("evidence", Sentences{verdict.evidence, verdict.evidence_count},
            "what shows it, a sentence each");
  }
};

}  // namespace oomrec::facts
