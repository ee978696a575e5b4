#include "tools/bundles/ranks/job_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/text.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

std::string program_of(const recording::Recording& recording) {
  const std::string program = recording.text(program_of(recording.header()));
  return printable(program.substr(program.rfind('/') + 1));
}

// Seconds since 1970.
double timestamp(std::uint64_t realtime_ns) { return static_cast<double>(realtime_ns) / 1e9; }

Json failure_json(const JobRank& rank, const Job& job) {
  if (!rank.failure) return nullptr;
  const std::uint64_t time_ns = rank.failure_ns(), first_ns = job.ranks[*job.first].failure_ns();
  const auto after_ns = static_cast<std::int64_t>(time_ns - first_ns);
  return {{"kind", word_of(rank.failure->kind)},
          {"timestamp", timestamp(time_ns)},
          {"seconds_after_first", static_cast<double>(after_ns) / 1e9},
          {"what", printable(rank.failure->what)}};
}

// A rank that the launcher ended because of another one did not end for lack of memory.
std::string_view verdict_word(const JobRank& rank) {
  return name_of(rank.ended_after ? VerdictCode::killed_externally : rank.source.verdict().code);
}

Json rank_json(const JobRank& rank, const Job& job, const std::string& bundle) {
  const recording::Recording& recording = *rank.source.recording;
  const session::Header& header = recording.header();
  return {
      {"rank", rank.identity.rank},
      {"local_rank", job.numbered ? Json(nullptr) : Json(rank.identity.local_rank)},
      {"host", text_or_null(host_of(recording))},
      {"pid", static_cast<std::uint64_t>(header.pid)},
      {"program", text_or_null(program_of(recording))},
      {"trigger", name_of(rank.source.trigger())},
      {"verdict", verdict_word(rank)},
      {"summary", text_or_null(printable(rank.source.verdict().summary))},
      {"outcome", rank.source.outcome()},
      {"ended_after_rank", rank.ended_after},
      {"start_timestamp", timestamp(rank.realtime_of(header.start_monotonic_ns))},
      {"end_timestamp", timestamp(rank.realtime_of(recording.end_ns()))},
      {"shift_seconds", static_cast<double>(rank.shift_ns) / 1e9},
      {"live_bytes", recording.held_bytes()},
      {"peak_bytes", recording.peak_bytes()},
      {"trouble", failure_json(rank, job)},
      {"further_processes", rank.other_processes},
      {"bundle", bundle},
  };
}

Json first_json(const Job& job) {
  if (!job.first) return nullptr;
  const JobRank& first = job.ranks[*job.first];
  return {{"rank", first.identity.rank},
          {"kind", word_of(first.failure->kind)},
          {"timestamp", timestamp(first.failure_ns())},
          {"why", printable(first.failure->what)}};
}

// "ranks 0, 1 and 3".
std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kMost = 12;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  if (ranks.size() > kMost) text += fmt::format(" and {} more", ranks.size() - kMost);
  return text;
}

void add_evidence(verdict::Verdict& verdict, const std::string& line) {
  if (verdict.evidence_count >= verdict::Verdict::kMaxEvidence) return;
  text::Text{verdict.evidence[verdict.evidence_count++]}.add(line);
}

// How the other ranks ended. Comes before the first one's own evidence.
std::vector<std::string> outcomes_of_others(const Job& job, const JobRank& first) {
  std::vector<std::uint32_t> ended;
  std::vector<std::string> lines;
  for (const JobRank& rank : job.ranks)
    if (rank.ended_after) ended.push_back(rank.identity.rank);
  if (!ended.empty())
    lines.push_back(
        fmt::format("{} {} ended after rank {}: by the launcher, not for lack of memory",
                    ranks_text(ended), ended.size() == 1 ? "was" : "were", first.identity.rank));
  for (const JobRank& rank : job.ranks) {
    if (&rank == &first || !rank.failure || rank.failure->kind == RankFailureKind::grew ||
        lines.size() >= 4)
      continue;
    const double after = timestamp(rank.failure_ns()) - timestamp(first.failure_ns());
    lines.push_back(fmt::format("rank {}, {:.3f} s {}: {}", rank.identity.rank, std::abs(after),
                                after < 0 ? "before" : "later", printable(rank.failure->what)));
  }
  if (!job.missing.empty())
    lines.push_back(fmt::format("there is no bundle of {}", ranks_text(job.missing)));
  return lines;
}

}  // namespace

Json job_json(const Job& job, const std::function<std::string(const JobRank&)>& bundle_of) {
  Json ranks = Json::array();
  for (const JobRank& rank : job.ranks) ranks.push_back(rank_json(rank, job, bundle_of(rank)));
  Json left_out = Json::array();
  for (const LeftOut& one : job.left_out)
    left_out.push_back({{"what", printable(one.what)}, {"why", printable(one.why)}});
  return {
      {"schema_version", 1},
      {"job_id", text_or_null(printable(job.id))},
      {"world_size", job.world_size},
      {"ranks_are", job.numbered ? "as_named" : "recorded"},
      {"clock",
       {{"aligned_by", job.mark.empty() ? "wall_clock" : "mark"},
        {"mark", text_or_null(printable(job.mark))},
        {"hosts", job.hosts()}}},
      {"first", first_json(job)},
      {"missing", job.missing},
      {"left_out", std::move(left_out)},
      {"ranks", std::move(ranks)},
  };
}

verdict::Verdict verdict_of(const Job& job) {
  if (!job.first || job.ranks[*job.first].failure->kind == RankFailureKind::grew) {
    verdict::Verdict verdict;
    verdict.code = VerdictCode::unknown;
    text::Text{verdict.summary}.add(fmt::format("none of {} is known to have run short of memory",
                                                plural(job.ranks.size(), "rank", "ranks")));
    if (job.first) {
      const JobRank& first = job.ranks[*job.first];
      add_evidence(verdict, fmt::format("rank {} was the first to grow: {}", first.identity.rank,
                                        first.failure->what));
    }
    for (const JobRank& rank : job.ranks)
      add_evidence(verdict,
                   fmt::format("rank {}: {}", rank.identity.rank, rank.source.verdict().summary));
    if (!job.missing.empty())
      add_evidence(verdict, fmt::format("there is no bundle of {}", ranks_text(job.missing)));
    return verdict;
  }
  const JobRank& first = job.ranks[*job.first];
  const verdict::Verdict own = first.source.verdict();
  verdict::Verdict verdict;
  verdict.code = own.code;
  verdict.limit = own.limit;
  const std::string of =
      job.world_size != 0 ? fmt::format(" of {}", job.world_size) : std::string{};
  text::Text{verdict.summary}.add(
      fmt::format("rank {}{} was first: {}", first.identity.rank, of, own.summary));
  for (const std::string& line : outcomes_of_others(job, first)) add_evidence(verdict, line);
  for (unsigned i = 0; i < own.evidence_count; ++i)
    add_evidence(verdict, fmt::format("rank {}: {}", first.identity.rank, own.evidence[i]));
  return verdict;
}

}  // namespace oomrec::tools::bundles
