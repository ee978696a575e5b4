#include "tools/bundles/recover/completion.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/bundle/bundle.h"
#include "common/session/vocabulary.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/deaths/evidence.h"

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

// "exited 3"
deaths::Ending ending_in(const Json& metadata) {
  deaths::Ending ending;
  const std::string text = text_of(metadata, "outcome").value_or("");
  const std::vector<std::string_view> words = split(text, ' ');
  const auto found = std::find(kOutcomeNames.begin(), kOutcomeNames.end(), words.front());
  if (found == kOutcomeNames.end()) return ending;
  ending.outcome = static_cast<OutcomeKind>(found - kOutcomeNames.begin());
  if (words.size() > 1) ending.value = static_cast<std::int32_t>(system::number_in(words[1]));
  return ending;
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

bool change_evidence(const std::filesystem::path& path,
                     const std::function<void(session::EndLevels&)>& change) {
  constexpr std::uint64_t kMostNs = 600'000'000'000;
  const Json metadata = read_json(path, "metadata.json");
  deaths::Ending ending = ending_in(metadata);
  {
    const recording::Recording recorded{recording_in(path)};
    const session::Header& header = recorded.header();
    const bool is_recent = header.death.realtime_ns != 0 && deaths::is_this_boot(header) &&
                           header.death.realtime_ns + kMostNs >= system::realtime_ns();
    if (!is_recent) return false;
    ending.evidence = {header.death, header.end_levels, header.account};
  }
  change(ending.evidence.levels);
  const auto failure = static_cast<std::uint32_t>(number_of(metadata, "failure").value_or(0));
  const verdict::Verdict verdict = verdict_with_death(path, metadata, failure, ending);
  bundle::Completion completion;
  completion.outcome = ending.outcome;
  completion.value = ending.value;
  completion.verdict = &verdict;
  completion.end = &ending.evidence;
  const auto workspace = std::make_unique<bundle::Workspace>();
  return bundle::complete(OutsideHooks::in_hook(), path.c_str(), completion, *workspace);
}

}  // namespace oomrec::tools::bundles
