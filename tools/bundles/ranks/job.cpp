#include "tools/bundles/ranks/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "common/session/directories.h"
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

// Clocks of one host do not disagree, but a bundle's time is to the second.
constexpr std::uint64_t kSlackNs = 2'000'000'000;

struct Named {
  fs::path path;
  bool itself = false;  // was named, not found in a directory
};

struct Candidate {
  Named named;
  std::optional<RankIdentity> who;
  Source source;

  const session::Header& header() const { return source.recording->header(); }
  std::uint64_t written_ns() const { return time_of_text(created_at_of(source)); }
  static std::string created_at_of(const Source& source) {
    return text_of(source.manifest, "created_at_utc").value_or("");
  }
};

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at{directory, error}, end; !error && at != end; at.increment(error))
    if (!at->path().filename().native().starts_with('.')) entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_recording(const fs::path& path) { return path.extension() == session::kFileSuffix; }

void add_named(const fs::path& path, bool itself, std::vector<Named>& found) {
  std::error_code error;
  const bool is_open_directory = fs::is_directory(path, error) && may_read(path);
  if (is_open_directory && is_merged(path)) {
    if (!itself) return;  // its ranks are beside it
    for (const fs::path& rank : entries_of(path / kRanksName)) found.push_back({rank, false});
  } else if (!is_open_directory || is_bundle(path)) {
    found.push_back({path, itself});
  } else if (itself) {
    recover_orphans({fs::absolute(path).lexically_normal()});
    for (const fs::path& entry : entries_of(path))
      if (is_bundle(entry) || is_recording(entry)) add_named(entry, false, found);
    for (const fs::path& closed : closed_bundles_in(path)) found.push_back({closed, false});
  }
}

std::vector<Candidate> opened(const std::vector<Named>& named,
                              const std::shared_ptr<const recording::CacheDirectory>& cache,
                              Job& job) {
  std::vector<Candidate> candidates;
  for (const Named& one : named) {
    try {
      Candidate candidate{one, {}, open_recorded(one.path, cache)};
      candidate.who = rank_of(candidate.source);
      candidates.push_back(std::move(candidate));
    } catch (const Error& error) {
      // Of a directory's other bundles nobody asked.
      const auto who = rank_of_bundle(one.path);
      if (one.itself || who || !may_read(one.path))
        job.left_out.push_back(
            {who ? fmt::format("rank {} ({})", who->rank, one.path.filename().string())
                 : one.path.string(),
             error.what()});
    }
  }
  return candidates;
}

// Where no recording knows its rank, they are numbered as they were named.
void number_if_unknown(std::vector<Candidate>& candidates, Job& job) {
  const auto is_known = [](const Candidate& candidate) { return candidate.who.has_value(); };
  if (std::any_of(candidates.begin(), candidates.end(), is_known)) return;
  const auto count = static_cast<std::uint32_t>(
      std::count_if(candidates.begin(), candidates.end(),
                    [](const Candidate& candidate) { return candidate.named.itself; }));
  std::uint32_t next = 0;
  for (Candidate& candidate : candidates) {
    if (!candidate.named.itself) continue;
    candidate.who = RankIdentity{next, next, count, {}};
    ++next;
  }
  job.numbered = count != 0;
}

// Nobody asked of those of a directory that never were of a rank.
void drop_without_rank(std::vector<Candidate>& candidates, Job& job) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (candidate.who) return false;
    const std::string said = senseless_rank_of(candidate.source);
    if (!said.empty())
      job.left_out.push_back(
          {candidate.named.path.string(), fmt::format("that is no rank of a job: {}", said)});
    else if (candidate.named.itself)
      job.left_out.push_back(
          {candidate.named.path.string(), "it does not say which rank it is of"});
    return true;
  });
}

// Of several jobs the one that wrote last.
void keep_one_job(std::vector<Candidate>& candidates, Job& job) {
  const auto key = [](const Candidate& one) {
    return std::pair{one.who->job, one.who->world_size};
  };
  const auto newest = std::max_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.written_ns() < b.written_ns(); });
  const auto kept = key(*newest);
  job.id = kept.first;
  job.world_size = kept.second;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (key(candidate) == kept) return false;
    if (!candidate.named.itself) return true;
    job.left_out.push_back(
        {candidate.named.path.string(),
         fmt::format("it is of another job: {}, {} ranks",
                     candidate.who->job.empty() ? "without a name" : printable(candidate.who->job),
                     candidate.who->world_size)});
    return true;
  });
}

bool is_same_process(const Candidate& a, const Candidate& b) {
  return a.header().pid == b.header().pid && a.header().start_ticks == b.header().start_ticks &&
         std::memcmp(a.header().boot_id, b.header().boot_id, sizeof a.header().boot_id) == 0 &&
         a.header().start_realtime_ns == b.header().start_realtime_ns;
}

// The last bundle of each process: it has all that the earlier ones have.
void keep_last_of_process(std::vector<Candidate>& candidates) {
  std::stable_sort(
      candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        const auto order = [](const Candidate& one) {
          return std::pair{one.written_ns(),
                           number_of(one.source.manifest, "process_bundle").value_or(0)};
        };
        return order(a) > order(b);
      });
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Candidate& other) {
      return is_same_process(other, candidate);
    });
    if (!known) kept.push_back(std::move(candidate));
  }
  candidates = std::move(kept);
}

bool begun_by_another(const Candidate& one, const std::vector<Candidate>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
    return &other != &one && other.who->rank == one.who->rank &&
           is_parent(other.header(), one.header());
  });
}

// Of each host those that lived when the last of its ranks began: an attempt that was made again
// has ended before.
void keep_last_attempt(std::vector<Candidate>& candidates) {
  std::map<std::string, std::uint64_t> began;
  for (const Candidate& candidate : candidates) {
    if (begun_by_another(candidate, candidates)) continue;
    std::uint64_t& last = began[host_of(*candidate.source.recording)];
    last = std::max(last, candidate.header().start_realtime_ns);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const recording::Recording& recording = *candidate.source.recording;
    const std::uint64_t seen =
        std::max(recording.realtime_of(recording.end_ns()), candidate.written_ns());
    const std::uint64_t last = began[host_of(recording)];
    return last != 0 && seen + kSlackNs < last;
  });
}

// A rank's first process stands for it: its workers have its number, too.
void fill_ranks(std::vector<Candidate>& candidates, Job& job) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair{a.who->rank, a.header().start_realtime_ns} <
                            std::pair{b.who->rank, b.header().start_realtime_ns};
                   });
  for (Candidate& candidate : candidates) {
    if (!job.ranks.empty() && job.ranks.back().who.rank == candidate.who->rank) {
      ++job.ranks.back().further;
      continue;
    }
    JobRank rank;
    rank.who = *candidate.who;
    rank.source = std::move(candidate.source);
    rank.trouble = trouble_of(rank.source);
    job.ranks.push_back(std::move(rank));
  }
  std::set<std::uint32_t> there;
  for (const JobRank& rank : job.ranks) there.insert(rank.who.rank);
  for (std::uint32_t rank = 0; rank < job.world_size; ++rank)
    if (!there.contains(rank)) job.missing.push_back(rank);
}

void align(Job& job, const std::string& mark) {
  if (mark.empty()) return;
  std::vector<std::uint64_t> times;
  std::vector<std::string> without;
  for (const JobRank& rank : job.ranks) {
    const std::vector<recording::TimeMark> marks =
        recording::timeline_of(*rank.source.recording).marks;
    const auto at = std::find_if(marks.begin(), marks.end(),
                                 [&](const recording::TimeMark& one) { return one.text == mark; });
    if (at == marks.end()) without.push_back(std::to_string(rank.who.rank));
    times.push_back(at == marks.end() ? 0 : rank.source.recording->realtime_of(at->time_ns));
  }
  if (!without.empty()) {
    throw Error{Exit::bad_input,
                fmt::format("rank {} made no mark '{}'", fmt::join(without, ", "), printable(mark)),
                "Every rank has to make it: oomrec_mark, oomrec.mark. Without --align the hosts' "
                "wall clocks count; `oomrec timeline BUNDLE` lists marks."};
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

std::uint64_t JobRank::trouble_ns() const {
  return trouble->realtime_ns + static_cast<std::uint64_t>(shift_ns);
}

std::size_t Job::hosts() const {
  std::set<std::string> hosts;
  for (const JobRank& rank : ranks) hosts.insert(host_of(*rank.source.recording));
  return hosts.size();
}

void find_first(Job& job) {
  const auto order = [](const JobRank& rank) {
    return std::pair{rank.trouble->kind, rank.trouble_ns()};
  };
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const JobRank& rank = job.ranks[i];
    if (rank.trouble && (!job.first || order(rank) < order(job.ranks[*job.first]))) job.first = i;
  }
  if (!job.first || job.ranks[*job.first].trouble->kind == TroubleKind::grew) return;
  const JobRank& first = job.ranks[*job.first];
  for (JobRank& rank : job.ranks)
    if (&rank != &first && (was_terminated(rank.source.outcome()) ||
                            rank.source.verdict().code == VerdictCode::killed_externally))
      rank.ended_after = first.who.rank;
}

Job job_of(const std::vector<std::string>& named, const std::string& mark,
           const std::shared_ptr<const recording::CacheDirectory>& cache) {
  Job job;
  std::vector<Named> found;
  for (const std::string& path : named) add_named(path, true, found);
  std::vector<Candidate> candidates = opened(found, cache, job);
  number_if_unknown(candidates, job);
  drop_without_rank(candidates, job);
  if (candidates.empty()) {
    const std::string why =
        job.left_out.empty()
            ? std::string{"no bundle there says which rank it is of"}
            : fmt::format("{}: {}", printable(job.left_out[0].what), job.left_out[0].why);
    throw Error{Exit::nothing_found, why,
                "Name the bundles one by one: they are then ranks in that order."};
  }
  keep_one_job(candidates, job);
  keep_last_of_process(candidates);
  if (!job.numbered) keep_last_attempt(candidates);
  fill_ranks(candidates, job);
  align(job, mark);
  find_first(job);
  return job;
}

bool holds_ranks(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || is_bundle(directory)) return false;
  const std::vector<fs::path> entries = entries_of(directory);
  return std::any_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    if (!is_bundle(entry) || is_merged(entry)) return false;
    const auto who = rank_of_bundle(entry);
    return who && who->world_size > 1;
  });
}

}  // namespace oomrec::tools::bundles
