#include "tools/ranks/identity.h"

#include <charconv>

#include "recorder/rank_variables.h"

namespace oomrec::tools {
namespace {

std::optional<std::uint32_t> variable(const Json& environment, std::string_view name) {
  const auto text = text_of(environment, name);
  std::uint32_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool whole = error == std::errc{} && end == text->data() + text->size() && !text->empty();
  return whole ? std::optional{value} : std::nullopt;
}

std::optional<RankIdentity> checked(std::optional<std::uint64_t> rank,
                                    std::optional<std::uint64_t> local_rank,
                                    std::optional<std::uint64_t> world_size, std::string job) {
  constexpr std::uint64_t kMost = 1U << 24;
  if (!rank || !local_rank || !world_size || *world_size > kMost || *rank >= *world_size ||
      *local_rank >= *world_size)
    return std::nullopt;
  return RankIdentity{static_cast<std::uint32_t>(*rank), static_cast<std::uint32_t>(*local_rank),
                      static_cast<std::uint32_t>(*world_size), std::move(job)};
}

}  // namespace

std::optional<RankIdentity> rank_in(const Json& environment) {
  for (const RankVariables& names : kRankVariables) {
    auto found = checked(variable(environment, names.rank), variable(environment, names.local_rank),
                         variable(environment, names.world_size), {});
    if (!found) continue;
    for (const std::string_view job : kJobVariables)
      if (found->job.empty()) found->job = text_of(environment, job).value_or("");
    return found;
  }
  return std::nullopt;
}

std::optional<RankIdentity> rank_of_bundle(const std::filesystem::path& bundle) {
  const Json manifest = read_json(bundle / "manifest.json");
  if (auto found =
          checked(number_of(manifest, "rank"), number_of(manifest, "local_rank"),
                  number_of(manifest, "world_size"), text_of(manifest, "job_id").value_or("")))
    return found;
  return rank_in(member(read_json(bundle / "environment.json"), "environment"));
}

std::optional<RankIdentity> rank_of(const Source& source) {
  const session::Rank& stored = source.recording->header().rank;
  if (stored.known != 0) {
    if (auto found = checked(stored.rank, stored.local_rank, stored.world_size,
                             source.recording->text(stored.job)))
      return found;
  }
  return source.bundle.empty() ? std::nullopt : rank_of_bundle(source.bundle);
}

}  // namespace oomrec::tools
