#include "tools/bundles/ranks/identity.h"

#include "tools/formats/telemetry/rank.h"

namespace oomrec::tools::bundles {
namespace {

formats::Variables variables_in(const Json& environment) {
  return [&environment](std::string_view name) { return text_of(environment, name); };
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
  const formats::RankTags found = formats::rank_of(variables_in(environment));
  return checked(found.rank, found.local_rank, found.world_size, found.job_id.value_or(""));
}

std::optional<RankIdentity> rank_of_bundle(const std::filesystem::path& bundle) {
  const auto manifest = read_file<Manifest>(bundle);
  if (auto found =
          checked(manifest.rank, manifest.local_rank, manifest.world_size, manifest.job_id))
    return found;
  return rank_in(variables_of(bundle));
}

std::string inconsistent_rank_of(const Source& source) {
  if (source.bundle.empty()) return {};
  return formats::inconsistent_rank(variables_in(variables_of(source.bundle)));
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

}  // namespace oomrec::tools::bundles
