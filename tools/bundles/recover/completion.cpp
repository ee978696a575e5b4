#include "tools/bundles/recover/completion.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bundle/bundle.h"
#include "common/session/vocabulary.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/stored_facts.h"
#include "tools/deaths/evidence.h"

namespace oomrec::tools::bundles {
namespace {

bool is_crash_of(const recording::Recording& recording, std::uint32_t failure) {
  const session::Crash& crash = recording.header().crash;
  return crash.signal != 0 && crash.failure != 0 && crash.failure == failure &&
         verdict::follows_failure(recording.view());
}

// From the bundle's own recording, so that every reader computes the same verdict.
verdict::Verdict verdict_with_death(const std::filesystem::path& bundle, const Metadata& metadata,
                                    std::uint32_t failure, const deaths::Ending& ending) {
  const recording::Recording recorded{recording_in(bundle)};
  const auto trigger = value_named<Trigger>(kTriggerNames, metadata.reason);
  return verdict::verdict_of(recorded.view(), trigger.value_or(Trigger::none), failure,
                             metadata.context.value_or(""), ending.outcome_text(),
                             &ending.evidence);
}

// "exited 3"
deaths::Ending ending_in(const Metadata& metadata) {
  deaths::Ending ending;
  const std::vector<std::string_view> words = split(metadata.outcome, ' ');
  const auto found = std::ranges::find(kOutcomeNames, words.front());
  if (found == kOutcomeNames.end()) return ending;
  ending.outcome = static_cast<OutcomeKind>(found - kOutcomeNames.begin());
  if (words.size() > 1) ending.value = static_cast<std::int32_t>(system::number_in(words[1]));
  return ending;
}

}  // namespace

CompletionResult complete_bundle(const std::filesystem::path& path,
                                 const recording::Recording& recording,
                                 const deaths::Ending& ending, BundleEvent event) {
  const auto metadata = read_file<Metadata>(path);
  const std::uint32_t failure = metadata.failure.value_or(0);
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
  const auto metadata = read_file<Metadata>(path);
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
  const std::uint32_t failure = metadata.failure.value_or(0);
  const verdict::Verdict verdict = verdict_with_death(path, metadata, failure, ending);
  bundle::Completion completion;
  completion.outcome = ending.outcome;
  completion.value = ending.value;
  completion.verdict = &verdict;
  completion.end = &ending.evidence;
  const auto workspace = std::make_unique<bundle::Workspace>();
  return bundle::complete(OutsideHooks::in_hook(), path.c_str(), completion, *workspace);
}

namespace {

namespace fs = std::filesystem;

// True also for a helper in another pid namespace, whose state is not visible here.
bool may_still_write(const session::Header& process) {
  const pid_t helper = process.helper_pid;
  const bool same_pid_namespace = helper > 0 && process.pid_namespace == system::pid_namespace();
  return !same_pid_namespace || kill(helper, 0) == 0 || errno == EPERM;
}

// Newest first. Also those of a process that had become another user's by then.
std::vector<BundleSummary> bundles_written_by(const DeadProcess& process) {
  const session::Header& header = process.recording.header();
  std::vector<BundleSummary> own;
  std::vector<fs::path> directories{fs::path{process.dump_directory}.lexically_normal()};
  // What could not be written there is beside the recording.
  if (const fs::path beside = process.session_directory.lexically_normal();
      beside != directories.front())
    directories.push_back(beside);
  for (BundleSummary& bundle : bundles_in(directories)) {
    if (bundle.pid != static_cast<std::uint64_t>(header.pid)) continue;
    const recording::Recording recorded{recording_in(bundle.path)};
    if (recorded.header().start_realtime_ns == header.start_realtime_ns)
      own.push_back(std::move(bundle));
  }
  return own;
}

// The helper renames a complete bundle into place, even after its process was killed.
std::vector<BundleSummary> await_bundles_of(const DeadProcess& process) {
  std::error_code error;
  std::vector<BundleSummary> own;
  wait_for_bundle([&] {
    if (!fs::is_directory(process.dump_directory, error)) return true;
    // Checked before the directory is listed: the helper may finish in between.
    const bool may_appear = may_still_write(process.recording.header());
    own = bundles_written_by(process);
    return !own.empty() || !may_appear;
  });
  return own;
}

bool holds_failure(const BundleSummary& bundle) {
  return read_file<Metadata>(bundle.path).failure.has_value();
}

// Whether a reader has made or completed it: what the process wrote itself awaits its end, unless
// it crashed.
bool has_end(const BundleSummary& bundle, const DeadProcess& process) {
  if (bundle.awaits_outcome || bundle.outcome == name_of(OutcomeKind::recovered)) return false;
  if (bundle.trigger == name_of(Trigger::killed)) return true;
  if (bundle.trigger == name_of(Trigger::crash)) return process.crash_is_due();
  const auto failure = read_file<Metadata>(bundle.path).failure;
  return failure && process.failed && *failure == process.failed->index &&
         (process.ending.killed || !process.has_failure_in_bundle());
}

// The time of writing, on the session's clock.
std::uint64_t monotonic_ns_of(const BundleSummary& bundle, const session::Header& header) {
  return header.start_monotonic_ns +
         (time_of_text(bundle.created_at_utc) - header.start_realtime_ns);
}

// Completes the bundle of a warning, not of a failure.
void complete_warning(const BundleSummary& bundle, const DeadProcess& process) {
  const recording::Recording& recording = process.recording;
  const bool led_to_end = deaths::follows(recording.view(), process.ending,
                                          monotonic_ns_of(bundle, recording.header()));
  complete_bundle(bundle.path, recording, process.ending,
                  led_to_end ? BundleEvent::led_to_end : BundleEvent::was_survived);
}

}  // namespace

OwnBundles complete_own_bundles(const DeadProcess& process) {
  const std::vector<BundleSummary> own =
      process.has_failure_in_bundle() ? await_bundles_of(process) : bundles_written_by(process);
  const BundleEvent failure =
      process.ended_by_failure ? BundleEvent::led_to_end : BundleEvent::was_survived;
  OwnBundles result;
  // Another user's counts where the process' own recording says that there is one.
  result.any = !own.empty();
  for (const BundleSummary& bundle : own) {
    if (!is_own_bundle(bundle.path)) continue;
    if (has_end(bundle, process)) result.with_end = bundle.path;
    if (!bundle.awaits_outcome) continue;
    if (!process.has_failure_in_bundle() || !holds_failure(bundle)) {
      complete_warning(bundle, process);
    } else if (result.completed.empty()) {
      const CompletionResult completed =
          complete_bundle(bundle.path, process.recording, process.ending, failure);
      result.crash_recorded |= completed.with_crash;
      if (completed.written) result.completed = bundle.path;
    }
  }
  return result;
}

}  // namespace oomrec::tools::bundles
