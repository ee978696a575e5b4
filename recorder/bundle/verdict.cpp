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
    summary.add("a refusal was simulated");
  } else {
    summary.add("no refused request is on record");
  }
}

}  // namespace

Verdict verdict_of(const session::View& view, Trigger trigger, std::uint32_t index,
                   std::string_view reason, std::string_view outcome,
                   const session::Death* found) noexcept {
  Verdict verdict;
  session::Failure failure{};
  const session::Death& death = found != nullptr ? *found : view.header().death;
  const bool asked_for = trigger == Trigger::request || trigger == Trigger::simulated;
  const bool refused =
      !asked_for && index != 0 && view.read(session::TableId::failures, index, failure);
  const session::Crash& crash = view.header().crash;
  const bool explained_by_crash =
      crash.signal.load(std::memory_order_acquire) != 0 &&
      (trigger == Trigger::crash || trigger == Trigger::killed ||
       (refused && crash.failure == index && follows_refusal(view.header())));
  if (explained_by_crash) {
    explain_crash(verdict, view);
  } else if (refused) {
    explain_refusal(verdict, view, failure);
  } else if (trigger == Trigger::killed) {
    explain_death(verdict, view, death, outcome);
  } else {
    explain_trigger(verdict, trigger, reason);
  }
  return verdict;
}

}  // namespace oomrec::bundle
