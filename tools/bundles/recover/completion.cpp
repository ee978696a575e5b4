#include "tools/bundles/recover/completion.h"

#include <memory>

#include "common/bundle/bundle.h"
#include "tools/base/json.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::bundles {
namespace {

bool is_crash_of(const recording::Recording& recording, std::uint32_t failure) {
  const session::Crash& crash = recording.header().crash;
  return crash.signal != 0 && crash.failure != 0 && crash.failure == failure &&
         verdict::follows_failure(recording.view());
}

// From the bundle's own recording, so that every reader computes the same verdict.
verdict::Verdict verdict_with_death(const std::filesystem::path& bundle, const Json& metadata,
                                    std::uint32_t failure, const deaths::Ending& ending) {
  const recording::Recording recorded{recording_in(bundle)};
  return verdict::verdict_of(recorded.view(), trigger_in(metadata).value_or(Trigger::none), failure,
                             text_of(metadata, "context").value_or(""), ending.outcome_text(),
                             &ending.evidence);
}

}  // namespace

CompletionResult complete_bundle(const std::filesystem::path& path,
                                 const recording::Recording& recording,
                                 const deaths::Ending& ending, BundleEvent event) {
  const Json metadata = read_json(path, "metadata.json");
  const auto failure = static_cast<std::uint32_t>(number_of(metadata, "failure").value_or(0));
  bundle::Completion completion =
      bundle::completion_of(recording.view(), failure, OutcomeKind::recovered, 0);
  verdict::Verdict verdict;
  const bool led_to_end = event == BundleEvent::led_to_end;
  const bool with_crash = led_to_end && is_crash_of(recording, failure);
  if (led_to_end) {
    completion.outcome = ending.outcome;
    completion.value = ending.value;
  }
  if (with_crash) {
    completion.crash = &recording.header().crash;
    completion.crash_session = &recording.view();
    verdict =
        verdict::verdict_of(recording.view(), Trigger::crash, failure, {}, ending.outcome_text());
    completion.verdict = &verdict;
  } else if (led_to_end) {
    if (ending.killed) completion.end = &ending.evidence;
    if (verdict::outranks_failure(ending.verdict)) {
      verdict = verdict_with_death(path, metadata, failure, ending);
      completion.verdict = &verdict;
    }
  }
  const auto workspace = std::make_unique<bundle::Workspace>();
  const bool written =
      bundle::complete(OutsideHooks::in_hook(), path.c_str(), completion, *workspace);
  return {written, with_crash};
}

}  // namespace oomrec::tools::bundles
