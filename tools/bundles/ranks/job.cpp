#include "tools/bundles/ranks/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "common/session/directories.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/process_tree.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// A bundle's time has a resolution of one second. The clock of one host is otherwise exact.
constexpr std::uint64_t kSlackNs = 2'000'000'000;

enum class Origin : std::uint8_t { argument, directory };

struct FoundBundle {
  fs::path path;
  Origin origin = Origin::argument;  // given by the user, or found in a directory

  bool is_argument() const { return origin == Origin::argument; }
};

struct Candidate {
  FoundBundle found;
  std::optional<RankIdentity> identity;
  Source source;

  const session::Header& header() const { return source.recording->header(); }
  std::uint64_t written_ns() const { return time_of_text(source.manifest.created_at_utc); }
};

std::vector<fs::path> visible_in(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (const fs::path& path : entries_of(directory))
    if (!is_hidden(path)) paths.push_back(path);
  std::ranges::sort(paths);
  return paths;
}

// The bundles in a merged bundle. A link would lead out of it.
std::vector<fs::path> ranks_in(const fs::path& merged) {
  std::error_code error;
  if (fs::is_symlink(merged / kRanksName, error)) return {};
  std::vector<fs::path> ranks = visible_in(merged / kRanksName);
  std::erase_if(ranks, [&](const fs::path& rank) { return fs::is_symlink(rank, error); });
  return ranks;
}

bool is_recording(const fs::path& path) { return path.extension() == session::kFileSuffix; }

void add_bundles(const fs::path& path, Origin origin, std::vector<FoundBundle>& found) {
  const bool is_argument = origin == Origin::argument;
  std::error_code error;
  const bool is_open_directory = fs::is_directory(path, error) && may_read(path);
  if (is_open_directory && is_merged(path)) {
    if (!is_argument) return;  // the bundles it was merged from are in the same directory
    for (const fs::path& rank : ranks_in(path)) found.push_back({rank, Origin::directory});
  } else if (!is_open_directory || is_bundle(path)) {
    found.push_back({path, origin});
  } else if (is_argument) {
    recover_orphans({fs::absolute(path).lexically_normal()});
    for (const fs::path& entry : visible_in(path))
      if (is_bundle(entry) || is_recording(entry)) add_bundles(entry, Origin::directory, found);
    for (const fs::path& bundle : unreadable_bundles_in(path))
      found.push_back({bundle, Origin::directory});
  }
}

std::vector<Candidate> opened(const std::vector<FoundBundle>& found,
                              const std::shared_ptr<const recording::CacheDirectory>& cache,
                              Job& job) {
  std::vector<Candidate> candidates;
  for (const FoundBundle& one : found) {
    try {
      Candidate candidate{one, {}, open_recorded(one.path, cache)};
      candidate.identity = rank_of(candidate.source);
      candidates.push_back(std::move(candidate));
    } catch (const Error& error) {
      // Bundles in a directory that belong to no rank are not worth a message.
      const auto identity = rank_of_bundle(one.path);
      if (one.is_argument() || identity || !may_read(one.path))
        job.left_out.push_back(
            {identity ? fmt::format("rank {} ({})", identity->rank, one.path.filename().string())
                      : one.path.string(),
             error.what()});
    }
  }
  return candidates;
}

// If no recording has a rank, numbers them in the order of the arguments.
void number_if_unknown(std::vector<Candidate>& candidates, Job& job) {
  const auto is_known = [](const Candidate& candidate) { return candidate.identity.has_value(); };
  if (std::ranges::any_of(candidates, is_known)) return;
  const auto count = static_cast<std::uint32_t>(std::ranges::count_if(
      candidates, [](const Candidate& candidate) { return candidate.found.is_argument(); }));
  std::uint32_t next = 0;
  for (Candidate& candidate : candidates) {
    if (!candidate.found.is_argument()) continue;
    candidate.identity = RankIdentity{next, next, count, {}};
    ++next;
  }
  job.numbered = count != 0;
}

// A bundle without a rank is reported only if the user named it, or if its rank is inconsistent.
void drop_without_rank(std::vector<Candidate>& candidates, Job& job) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (candidate.identity) return false;
    const std::string rank = inconsistent_rank_of(candidate.source);
    if (!rank.empty())
      job.left_out.push_back(
          {candidate.found.path.string(), fmt::format("its rank is inconsistent: {}", rank)});
    else if (candidate.found.is_argument())
      job.left_out.push_back({candidate.found.path.string(), "it has no rank"});
    return true;
  });
}

// Keeps the job with the newest bundle.
void keep_one_job(std::vector<Candidate>& candidates, Job& job) {
  const auto key = [](const Candidate& one) {
    return std::pair{one.identity->job, one.identity->world_size};
  };
  const auto newest = std::ranges::max_element(candidates, {}, &Candidate::written_ns);
  const auto kept = key(*newest);
  job.id = kept.first;
  job.world_size = kept.second;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (key(candidate) == kept) return false;
    if (!candidate.found.is_argument()) return true;
    job.left_out.push_back(
        {candidate.found.path.string(),
         fmt::format("it belongs to another job: {}, {} ranks",
                     candidate.identity->job.empty() ? "without a name"
                                                     : printable(candidate.identity->job),
                     candidate.identity->world_size)});
    return true;
  });
}

bool is_same_process(const Candidate& a, const Candidate& b) {
  return a.header().pid == b.header().pid && a.header().start_ticks == b.header().start_ticks &&
         std::memcmp(a.header().boot_id, b.header().boot_id, sizeof a.header().boot_id) == 0 &&
         a.header().start_realtime_ns == b.header().start_realtime_ns;
}

// Keeps the last bundle of each process: it contains everything the earlier ones do.
void keep_last_of_process(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    const auto order = [](const Candidate& one) {
      return std::pair{one.written_ns(), one.source.manifest.process_bundle};
    };
    return order(a) > order(b);
  });
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    const bool is_older = std::ranges::any_of(
        kept, [&](const Candidate& other) { return is_same_process(other, candidate); });
    if (!is_older) kept.push_back(std::move(candidate));
  }
  candidates = std::move(kept);
}

bool is_child_of_same_rank(const Candidate& one, const std::vector<Candidate>& candidates) {
  return std::ranges::any_of(candidates, [&](const Candidate& other) {
    return &other != &one && other.identity->rank == one.identity->rank &&
           is_parent(other.header(), one.header());
  });
}

// Keeps, for each host, the processes that were alive when its last rank started: those of an
// earlier attempt had ended by then.
void keep_last_attempt(std::vector<Candidate>& candidates) {
  std::map<std::string, std::uint64_t> last_start_ns;
  for (const Candidate& candidate : candidates) {
    if (is_child_of_same_rank(candidate, candidates)) continue;
    std::uint64_t& last = last_start_ns[host_of(*candidate.source.recording)];
    last = std::max(last, candidate.header().start_realtime_ns);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const recording::Recording& recording = *candidate.source.recording;
    const std::uint64_t last_sign_ns =
        std::max(recording.realtime_of(recording.end_ns()), candidate.written_ns());
    const std::uint64_t last = last_start_ns[host_of(recording)];
    return last != 0 && last_sign_ns + kSlackNs < last;
  });
}

// A rank's first process represents it: its workers have the same number.
void fill_ranks(std::vector<Candidate>& candidates, Job& job) {
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::pair{a.identity->rank, a.header().start_realtime_ns} <
           std::pair{b.identity->rank, b.header().start_realtime_ns};
  });
  for (Candidate& candidate : candidates) {
    if (!job.ranks.empty() && job.ranks.back().identity.rank == candidate.identity->rank) {
      ++job.ranks.back().other_processes;
      continue;
    }
    JobRank rank;
    rank.identity = *candidate.identity;
    rank.source = std::move(candidate.source);
    rank.failure = rank_failure_of(rank.source);
    job.ranks.push_back(std::move(rank));
  }
  std::set<std::uint32_t> present;
  for (const JobRank& rank : job.ranks) present.insert(rank.identity.rank);
  for (std::uint32_t rank = 0; rank < job.world_size; ++rank)
    if (!present.contains(rank)) job.missing.push_back(rank);
}

void align(Job& job, const std::string& mark) {
  if (mark.empty()) return;
  std::vector<std::uint64_t> times;
  std::vector<std::string> without;
  for (const JobRank& rank : job.ranks) {
    const std::vector<recording::TimeMark> marks =
        recording::timeline_of(*rank.source.recording).marks;
    const auto at = std::ranges::find(marks, mark, &recording::TimeMark::text);
    if (at == marks.end()) without.push_back(std::to_string(rank.identity.rank));
    times.push_back(at == marks.end() ? 0 : rank.source.recording->realtime_of(at->time_ns));
  }
  if (!without.empty()) {
    throw Error{
        Exit::bad_input,
        fmt::format("rank {} made no mark '{}'", fmt::join(without, ", "), printable(mark)),
        "Every rank must make it, with oomrec_mark or oomrec.mark. Without --align, the hosts' "
        "wall clocks are used; `oomrec timeline BUNDLE` lists marks."};
  }
  job.mark = mark;
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    job.ranks[i].shift_ns = static_cast<std::int64_t>(times.front() - times[i]);
}

}  // namespace

std::string host_of(const recording::Recording& recording) {
  const session::Header& header = recording.header();
  return printable({header.host, strnlen(header.host, sizeof header.host)});
}

std::uint64_t JobRank::realtime_of(std::uint64_t monotonic_ns) const {
  return source.recording->realtime_of(monotonic_ns) + static_cast<std::uint64_t>(shift_ns);
}

std::uint64_t JobRank::failure_ns() const {
  return failure->realtime_ns + static_cast<std::uint64_t>(shift_ns);
}

std::size_t Job::hosts() const {
  std::set<std::string> hosts;
  for (const JobRank& rank : ranks) hosts.insert(host_of(*rank.source.recording));
  return hosts.size();
}

void find_first_failure(Job& job) {
  const auto order = [](const JobRank& rank) {
    return std::pair{rank.failure->kind, rank.failure_ns()};
  };
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const JobRank& rank = job.ranks[i];
    if (rank.failure && (!job.first || order(rank) < order(job.ranks[*job.first]))) job.first = i;
  }
  if (!job.first || job.ranks[*job.first].failure->kind == RankFailureKind::grew) return;
  const JobRank& first = job.ranks[*job.first];
  for (JobRank& rank : job.ranks)
    if (&rank != &first && (was_terminated(rank.source.outcome()) ||
                            rank.source.verdict().code == VerdictCode::killed_externally))
      rank.ended_after = first.identity.rank;
}

Job job_of(const std::vector<std::string>& named, const std::string& mark,
           const std::shared_ptr<const recording::CacheDirectory>& cache) {
  Job job;
  std::vector<FoundBundle> found;
  for (const std::string& path : named) add_bundles(path, Origin::argument, found);
  std::vector<Candidate> candidates = opened(found, cache, job);
  number_if_unknown(candidates, job);
  drop_without_rank(candidates, job);
  if (candidates.empty()) {
    const std::string why =
        job.left_out.empty()
            ? std::string{"none of these bundles has a rank"}
            : fmt::format("{}: {}", printable(job.left_out[0].what), job.left_out[0].why);
    throw Error{Exit::nothing_found, why,
                "Name the bundles one by one: they become ranks 0, 1, 2 … in that order."};
  }
  keep_one_job(candidates, job);
  keep_last_of_process(candidates);
  if (!job.numbered) keep_last_attempt(candidates);
  fill_ranks(candidates, job);
  align(job, mark);
  find_first_failure(job);
  return job;
}

bool holds_ranks(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || is_bundle(directory)) return false;
  const std::vector<fs::path> entries = visible_in(directory);
  return std::ranges::any_of(entries, [](const fs::path& entry) {
    if (!is_bundle(entry) || is_merged(entry)) return false;
    const auto identity = rank_of_bundle(entry);
    return identity && identity->world_size > 1;
  });
}

}  // namespace oomrec::tools::bundles
