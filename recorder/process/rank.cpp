#include "recorder/process/rank.h"

#include <optional>

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

// A whole number below 2^31, in digits and nothing else.
std::optional<std::uint32_t> number_of(std::string_view text) noexcept {
  if (text.empty() || text.size() > 10) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (value > INT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

}  // namespace

RankFacts read_rank(const char* const* environment) noexcept {
  RankFacts facts;
  for (const RankVariables& group : kRankVariables) {
    const auto rank = number_of(variable(environment, group.rank));
    const auto local_rank = number_of(variable(environment, group.local_rank));
    const auto world_size = number_of(variable(environment, group.world_size));
    if (!rank || !local_rank || !world_size || *rank >= *world_size || *local_rank >= *world_size)
      continue;
    facts.known = true;
    facts.rank = *rank;
    facts.local_rank = *local_rank;
    facts.world_size = *world_size;
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
