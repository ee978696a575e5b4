#include "common/verdict/verdict.h"

#include <cstring>

#include "common/limits/health.h"
#include "common/text/text.h"
#include "common/verdict/parts.h"
#include "common/verdict/reasons.h"

namespace oomrec::verdict {
namespace {

void explain_trigger(Verdict& verdict, const session::View& view, Trigger trigger,
                     std::string_view reason) noexcept {
  text::Text summary{verdict.summary};
  if (trigger == Trigger::request) {
    verdict.code = VerdictCode::requested;
    summary.add("bundle requested");
    if (reason == kReasonAtExit)
      summary.add(" at exit (--dump-at-exit)");
    else if (!reason.empty())
      summary.add(": ").add(reason);
    else if (view.header().probes_total == 0)
      summary.add("; nothing was refused");
  } else if (trigger == Trigger::exception) {
    verdict.code = VerdictCode::exception;
    if (reason == kReasonOfWorker)
      summary.add(
          "the program ended by an exception for lack of memory that another process had "
          "raised, such as a worker of its pool; none of its own requests was refused");
    else
      summary.add("the program raised an exception for lack of memory; no request was refused");
  } else if (trigger == Trigger::simulated) {
    verdict.code = VerdictCode::simulated;
    summary.add("nothing was refused");
  } else {
    summary.add("no refused request is on record");
  }
}

// The failed request did not end the process. It becomes the last line of evidence; its own
// evidence, after the first `kept_lines` lines, is dropped.
void explain_kill(Verdict& verdict, const session::View& view, const End& end,
                  std::string_view outcome, unsigned kept_lines) noexcept {
  char refusal[sizeof verdict.summary];
  std::memcpy(refusal, verdict.summary, sizeof refusal);
  verdict.evidence_count = kept_lines;
  verdict.limit = LimitKind::none;
  verdict.limit_bytes = verdict.limit_used_bytes = 0;
  explain_death(verdict, view, end, outcome);
  if (refusal[0] != '\0')
    add_line(verdict, [&](text::Text& line) { line.add("before that, ").add(refusal); });
}

bool has_ended(std::string_view outcome) noexcept {
  return !outcome.empty() && outcome != name_of(OutcomeKind::running);
}

// For simulated processes, whose trigger does not say so.
bool is_near_limit(const session::Health& health) noexcept {
  constexpr unsigned kNearPercent = 90;
  return limit::usage_of_killing_limit(health).percent() >= kNearPercent;
}

}  // namespace

void explain(Verdict& verdict, const session::View& view, Trigger trigger, std::uint32_t index,
             std::string_view reason, std::string_view outcome, const session::EndEvidence* found,
             const session::Health* seen, const session::ChildDeath* worker) noexcept {
  verdict.code = VerdictCode::unknown;
  verdict.certainty = Certainty::proven;  // of what the process measured itself
  verdict.summary[0] = '\0';
  verdict.evidence_count = 0;
  verdict.limit = LimitKind::none;
  session::Failure failure{};
  const End end = end_of(view.header(), found);
  const session::Health& health = seen != nullptr ? *seen : view.header().health;
  const session::ChildDeath& child = worker != nullptr ? *worker : view.header().child;
  const bool simulated = trigger == Trigger::simulated || view.header().simulated != 0;
  const bool refused = trigger != Trigger::request && index != 0 &&
                       view.read(session::TableId::failures, index, failure);
  const session::Crash& crash = view.header().crash;
  const bool shared_memory_full = died_for_shared_memory(view, end, outcome);
  // What ended it outranks the signal or exit status that followed.
  const bool at_runtime_limit =
      !refused && !shared_memory_full && reached_runtime_limit(view) &&
      (trigger == Trigger::crash || trigger == Trigger::exception || trigger == Trigger::killed) &&
      !killed_by_kernel(view, end, outcome);
  const bool explained_by_crash = !shared_memory_full && !at_runtime_limit &&
                                  crash.signal.load(std::memory_order_acquire) != 0 &&
                                  (trigger == Trigger::crash || trigger == Trigger::killed ||
                                   (refused && crash.failure == index && follows_failure(view)));
  if (simulated)
    add_line(verdict, [](text::Text& line) { line.add("simulated by `oomrec simulate`"); });
  const unsigned kept_lines = verdict.evidence_count;
  if (refused && !explained_by_crash) explain_failed_request(verdict, view, failure);
  if ((trigger == Trigger::killed || simulated) && child.pid != 0) {
    explain_child(verdict, view, child, end, outcome);
  } else if (at_runtime_limit) {
    explain_runtime_limit(verdict, view);
  } else if (explained_by_crash) {
    explain_crash(verdict, view);
  } else if (trigger == Trigger::near_limit) {  // NOLINT(bugprone-branch-clone): the order counts
    explain_near_limit(verdict, view, health);
  } else if (trigger == Trigger::pressure) {
    explain_pressure(verdict, view, health);
  } else if (trigger != Trigger::request &&
             (shared_memory_full || killed_by_kernel(view, end, outcome))) {
    explain_kill(verdict, view, end, outcome, kept_lines);
  } else if (refused) {
    return;
  } else if (simulated && end.death.realtime_ns == 0 && is_near_limit(health)) {
    explain_near_limit(verdict, view, health);
  } else if (trigger == Trigger::killed || (simulated && has_ended(outcome))) {
    explain_death(verdict, view, end, outcome);
  } else {
    explain_trigger(verdict, view, trigger, reason);
  }
}

}  // namespace oomrec::verdict
