#include "tools/formats/telemetry/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "common/options/rank_variables.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"

namespace oomrec::tools::formats {
namespace {

// The inconsistency in words; empty: none.
std::string inconsistency(const RankTags& identity) {
  if (identity.world_size && *identity.world_size < 1) return "world size 0";
  // Readers of a rank without a world size assume a world of one process.
  const std::int64_t world = identity.world_size.value_or(1);
  if (identity.rank && *identity.rank >= world)
    return fmt::format("rank {} of {}", *identity.rank, world);
  if (identity.local_rank && *identity.local_rank >= world)
    return fmt::format("local rank {} of {}", *identity.local_rank, world);
  return {};
}

}  // namespace

RankTags rank_of(const Variables& variables) {
  RankTags found;
  for (const RankVariables& group : kRankVariables) {
    const auto value = [&](std::string_view name) { return variables(name).value_or(""); };
    if (const auto rank =
            launcher_rank(value(group.rank), value(group.local_rank), value(group.world_size))) {
      found = {{}, rank->rank, rank->local_rank, rank->world_size};
      break;
    }
  }
  for (const std::string_view name : kJobVariables) {
    found.job_id = variables(name);
    if (found.job_id && !found.job_id->empty()) return found;
  }
  found.job_id.reset();
  return found;
}

std::string inconsistent_rank(const Variables& variables) {
  if (rank_of(variables).rank) return {};
  const auto value = [&](std::string_view name) { return variables(name).value_or(""); };
  for (const RankVariables& group : kRankVariables) {
    if (value(group.rank).empty() || value(group.world_size).empty()) continue;
    const std::string local_rank = value(group.local_rank);
    return fmt::format("{}={}, {}, {}={}", group.rank, value(group.rank),
                       local_rank.empty() ? fmt::format("no {}", group.local_rank)
                                          : fmt::format("{}={}", group.local_rank, local_rank),
                       group.world_size, value(group.world_size));
  }
  return {};
}

RankTags with_overrides(const RankTags& found, const RankTags& overrides) {
  RankTags both = found;
  if (overrides.job_id) both.job_id = overrides.job_id;
  if (overrides.rank) both.rank = overrides.rank;
  if (overrides.local_rank) both.local_rank = overrides.local_rank;
  if (overrides.world_size) both.world_size = overrides.world_size;
  if (const std::string wrong = inconsistency(both); !wrong.empty()) {
    throw Error{Exit::bad_input, fmt::format("there is no {}", wrong),
                "Ranks start at 0 and must be less than --world-size."};
  }
  return both;
}

Variables own_variables() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string{name}.c_str());
    return value != nullptr ? std::optional<std::string>{value} : std::nullopt;
  };
}

Variables variables_of_process(int pid) {
  const std::string text = process_file(pid, "environ");
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string_view line : split(text, '\0')) {
    const std::size_t at = line.find('=');
    if (at != line.npos) values.emplace(line.substr(0, at), line.substr(at + 1));
  }
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at != values.end() ? std::optional{at->second} : std::nullopt;
  };
}

}  // namespace oomrec::tools::formats
