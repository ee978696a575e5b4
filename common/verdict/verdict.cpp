#include "common/verdict/verdict.h"

#include <cstring>

#include "common/limits/health.h"
#include "common/text/text.h"
#include "common/verdict/parts.h"
#include "common/verdict/rules.h"

namespace oomrec::verdict {
namespace {

// What the rules look at.
struct Facts {
  const session::View& view;
  const Event& event;
  const End end;
  const session::Health& health;
  const session::ChildDeath& child;
  unsigned kept_lines = 0;  // of evidence, before those of the failed request
  bool simulated = false;
  bool refused = false;  // an allocation failed, and that is what the bundle is about
  bool shared_memory_full = false;
  bool at_runtime_limit = false;
  bool crashed = false;  // and the crash explains more than the failed request

  Trigger trigger() const noexcept { return event.trigger; }
  bool killed_by_kernel() const noexcept {
    return verdict::killed_by_kernel(view, end, event.outcome);
  }
  bool has_ended() const noexcept {
    return !event.outcome.empty() && event.outcome != name_of(OutcomeKind::running);
  }
  // For simulated processes, whose trigger does not say so.
  bool is_near_limit() const noexcept {
    constexpr unsigned kNearPercent = 90;
    return limit::usage_of_killing_limit(health).percent() >= kNearPercent;
  }
};

Facts facts_of(const session::View& view, const Event& event, session::Failure& failure) noexcept {
  const session::Header& header = view.header();
  const Trigger trigger = event.trigger;
  Facts facts{view, event, end_of(header, event.end),
              event.health != nullptr ? *event.health : header.health,
              event.child != nullptr ? *event.child : header.child};
  facts.simulated = trigger == Trigger::simulated || header.simulated != 0;
  facts.refused = trigger != Trigger::request && event.failure != 0 &&
                  view.read(session::TableId::failures, event.failure, failure);
  facts.shared_memory_full = died_for_shared_memory(view, facts.end, event.outcome);
  // What ended it outranks the signal or exit status that followed.
  facts.at_runtime_limit =
      !facts.refused && !facts.shared_memory_full && reached_runtime_limit(view) &&
      (trigger == Trigger::crash || trigger == Trigger::exception || trigger == Trigger::killed) &&
      !facts.killed_by_kernel();
  const session::Crash& crash = header.crash;
  facts.crashed = !facts.shared_memory_full && !facts.at_runtime_limit &&
                  crash.signal.load(std::memory_order_acquire) != 0 &&
                  (trigger == Trigger::crash || trigger == Trigger::killed ||
                   (facts.refused && crash.failure == event.failure && follows_failure(view)));
  return facts;
}

void explain_request(Verdict& verdict, const Facts& facts) noexcept {
  verdict.code = VerdictCode::requested;
  text::Text summary{verdict.summary};
  summary.add("bundle requested");
  if (facts.event.reason == kReasonAtExit)
    summary.add(" at exit (--dump-at-exit)");
  else if (!facts.event.reason.empty())
    summary.add(": ").add(facts.event.reason);
  else if (facts.view.header().probes_total == 0)
    summary.add("; nothing was refused");
}

void explain_exception(Verdict& verdict, const Facts& facts) noexcept {
  verdict.code = VerdictCode::exception;
  const bool of_worker = facts.event.reason == kReasonOfWorker;
  text::Text{verdict.summary}.add(
      of_worker ? "the program ended by an exception for lack of memory that another process had "
                  "raised, such as a worker of its pool; none of its own requests was refused"
                : "the program raised an exception for lack of memory; no request was refused");
}

// If a request had failed, that did not end the process. It becomes the last line of evidence; its
// own evidence is dropped.
void explain_end(Verdict& verdict, const Facts& facts) noexcept {
  char refusal[sizeof verdict.summary];
  std::memcpy(refusal, verdict.summary, sizeof refusal);
  verdict.evidence_count = facts.kept_lines;
  verdict.limit = {};
  explain_death(verdict, facts.view, facts.end, facts.event.outcome);
  if (refusal[0] != '\0')
    add_line(verdict, [&](text::Text& line) { line.add("before that, ").add(refusal); });
}

void explain_level(Verdict& verdict, const Facts& facts) noexcept {
  explain_near_limit(verdict, facts.view, facts.health);
}

struct Rule {
  RuleText text;
  bool (*applies)(const Facts&) noexcept;
  void (*explain)(Verdict&, const Facts&) noexcept;
};

// A failed request is explained before: a rule above `refusal` replaces that.
constexpr Rule kRules[] = {
    {{"worker", "a worker died for lack of memory, then its parent", VerdictCode::child_killed},
     [](const Facts& facts) noexcept {
       return (facts.trigger() == Trigger::killed || facts.simulated) && facts.child.pid != 0;
     },
     [](Verdict& verdict, const Facts& facts) noexcept {
       explain_child(verdict, facts.view, facts.child, facts.end, facts.event.outcome);
     }},
    {{"runtime_limit", "its runtime's own limit was reached, and the kernel did not kill it",
      VerdictCode::runtime_limit},
     [](const Facts& facts) noexcept { return facts.at_runtime_limit; },
     [](Verdict& verdict, const Facts& facts) noexcept {
       explain_runtime_limit(verdict, facts.view);
     }},
    {{"crash", "it crashed: by itself, or because of the failed request", VerdictCode::unknown,
      true},
     [](const Facts& facts) noexcept { return facts.crashed; },
     [](Verdict& verdict, const Facts& facts) noexcept { explain_crash(verdict, facts.view); }},
    {{"near_limit", "it was near a limit, and lived", VerdictCode::near_limit},
     [](const Facts& facts) noexcept { return facts.trigger() == Trigger::near_limit; },
     explain_level},
    {{"pressure", "it waited for memory, and lived", VerdictCode::memory_pressure},
     [](const Facts& facts) noexcept { return facts.trigger() == Trigger::pressure; },
     [](Verdict& verdict, const Facts& facts) noexcept {
       explain_pressure(verdict, facts.view, facts.health);
     }},
    {{"kill", "the kernel killed it for lack of memory, or its shared memory was full",
      VerdictCode::unknown, true},
     [](const Facts& facts) noexcept {
       return facts.trigger() != Trigger::request &&
              (facts.shared_memory_full || facts.killed_by_kernel());
     },
     explain_end},
    {{"refusal", "a request failed", VerdictCode::unknown, true},
     [](const Facts& facts) noexcept { return facts.refused; },
     [](Verdict&, const Facts&) noexcept {}},
    {{"simulated_near_limit", "a simulated process is near a limit", VerdictCode::near_limit},
     [](const Facts& facts) noexcept {
       return facts.simulated && facts.end.death.realtime_ns == 0 && facts.is_near_limit();
     },
     explain_level},
    {{"death", "it ended", VerdictCode::unknown, true},
     [](const Facts& facts) noexcept {
       return facts.trigger() == Trigger::killed || (facts.simulated && facts.has_ended());
     },
     explain_end},
    {{"request", "someone asked for a bundle", VerdictCode::requested},
     [](const Facts& facts) noexcept { return facts.trigger() == Trigger::request; },
     explain_request},
    {{"exception", "the program raised an exception for lack of memory", VerdictCode::exception},
     [](const Facts& facts) noexcept { return facts.trigger() == Trigger::exception; },
     explain_exception},
    {{"simulated", "the process is simulated", VerdictCode::simulated},
     [](const Facts& facts) noexcept { return facts.trigger() == Trigger::simulated; },
     [](Verdict& verdict, const Facts&) noexcept {
       verdict.code = VerdictCode::simulated;
       text::Text{verdict.summary}.add("nothing was refused");
     }},
    {{"nothing", "none of these", VerdictCode::unknown},
     [](const Facts&) noexcept { return true; },
     [](Verdict& verdict, const Facts&) noexcept {
       text::Text{verdict.summary}.add("no refused request is on record");
     }},
};

}  // namespace

void explain(Verdict& verdict, const session::View& view, const Event& event) noexcept {
  verdict.code = VerdictCode::unknown;
  verdict.certainty = Certainty::proven;  // of what the process measured itself
  verdict.summary[0] = '\0';
  verdict.evidence_count = 0;
  verdict.limit = {};
  session::Failure failure{};
  Facts facts = facts_of(view, event, failure);
  if (facts.simulated)
    add_line(verdict, [](text::Text& line) { line.add("simulated by `oomrec simulate`"); });
  facts.kept_lines = verdict.evidence_count;
  if (facts.refused && !facts.crashed) explain_failed_request(verdict, view, failure);
  first_rule(kRules, facts).explain(verdict, facts);
}

std::span<const RuleText> rules_of_events() noexcept {
  static constexpr auto kTexts = texts_of(kRules);
  return kTexts;
}

}  // namespace oomrec::verdict
