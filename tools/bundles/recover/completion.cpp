#include "tools/bundles/recover/completion.h"

#include <memory>

#include "common/bundle/bundle.h"
#include "tools/base/json.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::bundles {

bool complete_bundle(const std::filesystem::path& path, const recording::Recording& recording,
                     const deaths::Ending& ending, bool related, bool* crash_told) {
  const Json metadata = read_json(path / "metadata.json");
  const auto failure = static_cast<std::uint32_t>(number_of(metadata, "failure").value_or(0));
  bundle::Completion completion{OutcomeKind::recovered, 0,
                                bundle::repeats_of(recording.view(), failure)};
  verdict::Verdict verdict;
  const session::Crash& crash = recording.header().crash;
  if (related && crash.signal != 0 && crash.failure != 0 && crash.failure == failure &&
      verdict::follows_refusal(recording.header())) {
    completion.outcome = ending.outcome;
    completion.value = ending.value;
    completion.crash = &crash;
    completion.crashed = &recording.view();
    verdict = verdict::verdict_of(recording.view(), Trigger::crash, failure, {}, ending.word());
    completion.verdict = &verdict;
    if (crash_told != nullptr) *crash_told = true;
  } else if (related) {
    completion.outcome = ending.outcome;
    completion.value = ending.value;
    if (ending.killed) completion.death = &ending.death;
    if (verdict::outranks_refusal(ending.verdict)) {
      // Of the bundle's own recording, as every reader will find it.
      const recording::Recording told{path / kRecordingName};
      verdict = verdict::verdict_of(told.view(), trigger_in(metadata).value_or(Trigger::none),
                                    failure, text_of(metadata, "context").value_or(""),
                                    ending.word(), &ending.death);
      completion.verdict = &verdict;
    }
  }
  const auto workspace = std::make_unique<bundle::Workspace>();
  return bundle::complete(OutsideHooks::in_hook(), path.c_str(), completion, *workspace);
}

}  // namespace oomrec::tools::bundles
