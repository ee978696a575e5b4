#include "tools/print/episode.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::print {
namespace {

using bundle::EpisodeRole;
using bundles::BundleSummary;

constexpr std::string_view kExited = "exited ";

std::string file_name_of(const BundleSummary& bundle) { return bundle.path.filename().string(); }

Json row_json(const BundleSummary& bundle) {
  return {{"bundle", file_name_of(bundle)},
          {"role", name_of(bundle.episode.role)},
          {"verdict", text_or_null(bundle.verdict)},
          {"outcome", text_or_null(bundle.outcome)}};
}

bool is_outcome_of_job(const BundleSummary& bundle) {
  return bundle.verdict == name_of(VerdictCode::child_killed) &&
         bundle.episode.role == EpisodeRole::consequence;
}

}  // namespace

Json episode_json(const bundles::Source& source) {
  if (source.bundle.empty() || source.is_job()) return nullptr;
  const std::vector<BundleSummary> all = bundles::bundles_in({source.bundle.parent_path()});
  const auto own = std::find_if(all.begin(), all.end(), [&](const BundleSummary& bundle) {
    return bundle.path == source.bundle;
  });
  if (own == all.end()) return nullptr;
  const std::uint32_t root = own->episode.root;
  Json rows = Json::array();
  Json job_outcome;
  for (const BundleSummary& bundle : all) {
    if (bundle.episode.root != root) continue;
    rows.push_back(row_json(bundle));
    if (is_outcome_of_job(bundle)) job_outcome = bundle.outcome;
  }
  return {{"root", file_name_of(all[root])},
          {"role", name_of(own->episode.role)},
          {"bundles", std::move(rows)},
          {"job_outcome", std::move(job_outcome)}};
}

std::string episode_text(const Json& episode, const bundles::Source& source) {
  const Json& rows = member(episode, "bundles");
  if (!rows.is_array() || rows.size() < 2) return {};
  std::string lines;
  for (const Json& row : rows) {
    const std::string name = text_of(row, "bundle").value_or("");
    if (name == source.bundle.filename()) continue;
    lines += fmt::format("  {:<12} {:<25} {:<11} {}\n", text_of(row, "role").value_or(""),
                         printable(text_of(row, "verdict").value_or("?")),
                         printable(text_of(row, "outcome").value_or("?")), printable(name));
  }
  return lines;
}

std::string job_outcome_text(const Json& episode) {
  const std::string outcome = text_of(episode, "job_outcome").value_or("");
  if (outcome.empty()) return {};
  return outcome.starts_with(kExited) ? fmt::format("its job ended with exit status {}",
                                                    printable(outcome.substr(kExited.size())))
                                      : fmt::format("its job ended: {}", printable(outcome));
}

}  // namespace oomrec::tools::print
