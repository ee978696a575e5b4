#include "recorder/process/rank.h"

#include "common/options/rank_variables.h"
#include "common/system/text.h"
#include "recorder/process/environment.h"
#include "recorder/session/writer.h"

namespace oomrec::recorder {

namespace {

constexpr std::size_t kJobBytes = 256;

struct Rank {
  RankFacts facts;  // their job is in `job`
  char job[kJobBytes];
};
constinit Rank g_rank{};

}  // namespace

RankFacts read_rank(const char* const* environment) noexcept {
  RankFacts facts;
  for (const RankVariables& group : kRankVariables) {
    const auto found =
        launcher_rank(variable(environment, group.rank), variable(environment, group.local_rank),
                      variable(environment, group.world_size));
    if (!found) continue;
    facts.known = true;
    facts.rank = found->rank;
    facts.local_rank = found->local_rank;
    facts.world_size = found->world_size;
    break;
  }
  for (const std::string_view name : kJobVariables)
    if (facts.job.empty()) facts.job = variable(environment, name);
  return facts;
}

void store_rank(const char* const* environment) noexcept {
  g_rank.facts = read_rank(environment);
  system::Text job(g_rank.job);
  job << g_rank.facts.job;
  g_rank.facts.job = job.view();
}

void describe_rank(InHook hook) noexcept {
  const RankFacts& facts = g_rank.facts;
  const session::StringId job = session::g_session.add_string(hook, facts.job);
  session::Rank& rank = session::g_session.header().rank;
  rank = {facts.known, facts.rank, facts.local_rank, facts.world_size, job, rank.process_labels};
}

}  // namespace oomrec::recorder
