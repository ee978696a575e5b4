#include "recorder/bundle/verdict.h"

#include "recorder/bundle/text.h"
#include "recorder/bundle/verdict_parts.h"

namespace oomrec::bundle {
namespace {

void explain_trigger(Verdict& verdict, Trigger trigger, std::string_view reason) noexcept {
  Text summary{verdict.summary};
  if (trigger == Trigger::request) {
    verdict.code = VerdictCode::requested;
    summary.add("the program or its user asked for a bundle");
    reason.empty() ? summary.add("; nothing was refused") : summary.add(": ").add(reason);
  } else if (trigger == Trigger::simulated) {
    verdict.code = VerdictCode::simulated;
    summary.add("nothing was refused");
  } else {
    summary.add("no refused request is on record");
  }
}

bool has_ended(std::string_view outcome) noexcept {
  return !outcome.empty() && outcome != name_of(OutcomeKind::running);
}

}  // namespace

Verdict verdict_of(const session::View& view, Trigger trigger, std::uint32_t index,
                   std::string_view reason, std::string_view outcome,
                   const session::Death* found) noexcept {
  Verdict verdict;
  session::Failure failure{};
  const session::Death& death = found != nullptr ? *found : view.header().death;
  const bool simulated = trigger == Trigger::simulated;
  const bool refused = trigger != Trigger::request && index != 0 &&
                       view.read(session::TableId::failures, index, failure);
  if (simulated) add_line(verdict, [](Text& line) { line.add("simulated by `oomrec simulate`"); });
  if (refused) {
    explain_refusal(verdict, view, failure);
  } else if (trigger == Trigger::killed || (simulated && has_ended(outcome))) {
    explain_death(verdict, view, death, outcome);
  } else {
    explain_trigger(verdict, trigger, reason);
  }
  return verdict;
}

}  // namespace oomrec::bundle
