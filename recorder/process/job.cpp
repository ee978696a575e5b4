#include "recorder/process/job.h"

#include "common/options/label_variables.h"
#include "common/options/rank_variables.h"
#include "common/session/secrets.h"
#include "common/system/text.h"
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

namespace {

constexpr std::size_t kMostOfOne = 256;  // key, "=" and value

char g_labels[kProcessLabelsBytes];
std::size_t g_labels_bytes = 0;

void add(system::Text& labels, std::string_view key, std::string_view value) noexcept {
  char masked[kMostOfOne + 1];
  system::Text one(masked);
  one << key << '=' << value;
  const std::size_t before = labels.size() == 0 ? 0 : 1;
  if (key.empty() || value.empty() || one.truncated() ||
      labels.size() + before + one.size() >= kProcessLabelsBytes)
    return;
  const std::size_t bytes = session::mask_secrets(masked, one.size());
  if (before != 0) labels << '\0';
  labels << std::string_view{masked, bytes};
}

std::string_view trimmed(std::string_view text) noexcept {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class IsListed>
void add_list(system::Text& labels, std::string_view list, IsListed is_listed) noexcept {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(entry.size() == list.size() ? entry.size() : entry.size() + 1);
    const auto equals = entry.find('=');
    if (equals == entry.npos) continue;
    const std::string_view key = trimmed(entry.substr(0, equals));
    if (is_listed(key)) add(labels, key, trimmed(entry.substr(equals + 1)));
  }
}

}  // namespace

std::string_view read_process_labels(const char* const* environment,
                                     char (&buffer)[kProcessLabelsBytes]) noexcept {
  system::Text labels(buffer);
  add(labels, "service.name", variable(environment, kServiceVariable));
  add_list(labels, variable(environment, kAttributesVariable), is_listed_attribute);
  add_list(labels, variable(environment, kLabelsVariable), [](std::string_view) { return true; });
  for (const LabelVariable& row : kLabelVariables)
    add(labels, row.label, variable(environment, row.variable));
  return labels.view();
}

void store_process_labels(const char* const* environment) noexcept {
  g_labels_bytes = read_process_labels(environment, g_labels).size();
}

void describe_process_labels(InHook hook) noexcept {
  const std::string_view labels{g_labels, g_labels_bytes};
  session::g_session.header().rank.process_labels = session::g_session.add_string(hook, labels);
}

}  // namespace oomrec::recorder
