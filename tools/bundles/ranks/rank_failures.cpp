#include "tools/bundles/ranks/rank_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/bundle/retention.h"
#include "common/verdict/verdict.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

constexpr std::uint64_t kLeastGrowthBytes = std::uint64_t{64} << 20;

RankFailure rank_failure(const session::Failure& failure, RankFailureKind kind) {
  return {kind, failure.realtime_ns,
          fmt::format("{} was refused {}", name_of(static_cast<Api>(failure.api)),
                      size_text(failure.bytes))};
}

// The time of an OOM death, or of a warning such as near_limit.
std::uint64_t time_of_end(const Source& source) {
  const recording::Recording& recording = *source.recording;
  const std::uint64_t noticed =
      source.ending ? source.ending->death().realtime_ns : recording.header().death.realtime_ns;
  const std::uint64_t last_sign = recording.realtime_of(recording.end_ns());
  // A recording that was recovered long after the death has no better time than its last sign of
  // life.
  const bool known = (recording.header().death.flags & session::kDeathWaited) != 0 ||
                     recording.header().death.kernel_line_kind != 0;
  return noticed != 0 && (known || noticed < last_sign) ? noticed : last_sign;
}

bool survived(const std::string& outcome) {
  return outcome == name_of(OutcomeKind::recovered) || was_terminated(outcome);
}

}  // namespace

bool was_terminated(const std::string& outcome) {
  return outcome == fmt::format("{} {}", name_of(OutcomeKind::signal), SIGTERM);
}

std::optional<Growth> first_growth(const std::vector<recording::Moment>& moments,
                                   std::uint64_t peak_bytes) {
  const std::uint64_t enough = std::max(kLeastGrowthBytes, peak_bytes / 10);
  std::uint64_t low = 0, before = 0;
  for (const recording::Moment& moment : moments) {
    const std::uint64_t held = recording::held_bytes_of(moment);
    if (&moment == &moments.front() || held < before) low = held;
    before = held;
    if (held - low >= enough) return Growth{moment.time_ns, held - low};
  }
  return std::nullopt;
}

std::optional<RankFailure> rank_failure_of(const Source& source) {
  const recording::Recording& recording = *source.recording;
  const session::View& view = recording.view();
  const verdict::Verdict verdict = source.verdict();
  const std::string outcome = source.outcome();
  const bool of_memory =
      bundle::is_about_memory(name_of(verdict.code), name_of(source.trigger())) &&
      verdict.code != VerdictCode::child_killed && !was_terminated(outcome);
  const recording::Timeline timeline = recording::timeline_of(recording);
  session::Failure stored{}, first{};
  const std::uint32_t index = source.failure();
  const bool has_failed = index != 0 && view.read(session::TableId::failures, index, stored);
  if (of_memory && verdict::is_death_caused_by_memory(verdict.code))
    return RankFailure{RankFailureKind::ended, time_of_end(source),
                       fmt::format("{} ({}): {}", name_of(verdict.code), name_of(verdict.certainty),
                                   verdict.summary)};
  if (of_memory && has_failed)
    return rank_failure(stored,
                        survived(outcome) ? RankFailureKind::refused : RankFailureKind::ended);
  if (!timeline.failures.empty() &&
      view.read(session::TableId::failures, timeline.failures.front().failure, first))
    return rank_failure(first, RankFailureKind::refused);
  if (of_memory && verdict.code != VerdictCode::unknown)  // a warning: near_limit, memory_pressure
    return RankFailure{RankFailureKind::refused, time_of_end(source), verdict.summary};
  if (const auto grown = first_growth(timeline.moments, recording.peak_bytes()))
    return RankFailure{
        RankFailureKind::grew, recording.realtime_of(grown->time_ns),
        fmt::format("it grew by {} without shrinking in between", size_text(grown->bytes))};
  return std::nullopt;
}

}  // namespace oomrec::tools::bundles
