#include "tools/sections/other_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::sections {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownProcesses = 12;
constexpr std::string_view kExited = "exited ";

// The latest bundle of each process in a dump directory, by the manifest's member `process`.
std::map<std::string, fs::path> latest_bundles(const fs::path& directory) {
  std::map<std::string, std::pair<std::string, fs::path>> latest;
  for (const fs::path& path : entries_of(directory)) {
    if (is_hidden(path)) continue;
    const auto manifest = bundles::read_file<bundles::Manifest>(path);
    if (!manifest.process.empty())
      latest[manifest.process] =
          std::max(latest[manifest.process], std::pair{manifest.created_at_utc, path});
  }
  std::map<std::string, fs::path> bundles;
  for (auto& [process, bundle] : latest) bundles[process] = bundle.second;
  return bundles;
}

bool is_provisional(const std::string& outcome) {
  return outcome == name_of(OutcomeKind::running) || outcome == name_of(OutcomeKind::unknown);
}

void update(bundles::TreeProcess& process, const bundles::Source& source,
            const std::map<std::string, fs::path>& bundles) {
  const auto later = bundles.find(process.process);
  if (process.relation == Relation::self) {
    process.outcome = source.outcome();
  } else if (later != bundles.end()) {
    if (process.bundle.empty()) process.bundle = later->second.filename();
    const std::string final_outcome = bundles::read_file<bundles::Metadata>(later->second).outcome;
    if (is_provisional(process.outcome) && !final_outcome.empty() &&
        final_outcome != bundles::kRunning)
      process.outcome = final_outcome;
  }
}

std::string size_or_dash(std::uint64_t bytes) { return bytes != 0 ? size_text(bytes) : "-"; }

std::string program_text(std::int32_t pid, const std::string& program) {
  return fmt::format("  {:>7}  {:<16}", pid, program.empty() ? "?" : clip(printable(program), 16));
}

std::string tree_line(const bundles::TreeProcess& process) {
  const bool has_other_bundle = !process.bundle.empty() && process.relation != Relation::self;
  return fmt::format("{} {:<10} {:>10} {:>10} {:>10}  {}{}\n",
                     program_text(process.pid, process.program), name_of(process.relation),
                     size_text(process.live_bytes), size_or_dash(process.rss_bytes),
                     size_text(process.peak_bytes), printable(process.outcome),
                     has_other_bundle ? "  " + printable(process.bundle) : "");
}

std::string file_name_of(const bundles::BundleSummary& bundle) {
  return bundle.path.filename().string();
}

bool is_outcome_of_job(const bundles::BundleSummary& bundle) {
  return bundle.verdict == name_of(VerdictCode::child_killed) &&
         bundle.episode.role == bundle::EpisodeRole::consequence;
}

}  // namespace

bundles::Processes related_processes(const bundles::Source& source) {
  if (source.bundle.empty()) return {};
  auto related = bundles::read_file<bundles::Processes>(source.bundle);
  std::erase_if(related.processes, [](const auto& process) { return process.pid == 0; });
  const auto bundles = related.processes.size() > 1 ? latest_bundles(source.bundle.parent_path())
                                                    : std::map<std::string, fs::path>{};
  for (bundles::TreeProcess& process : related.processes) update(process, source, bundles);
  return related;
}

Json tree_json(const bundles::Processes& related) {
  if (related.processes.empty()) return nullptr;
  Json rows = Json::array();
  for (const facts::TreeProcess<std::string>& process : related.processes)
    rows.push_back(fact_json(process));
  return rows;
}

Json others_json(const bundles::Processes& related) {
  return related.processes.empty() ? Json(nullptr) : facts_json(related.others);
}

std::string tree_text(const bundles::Processes& related, bool full) {
  if (related.processes.size() < 2) return {};
  std::vector<const bundles::TreeProcess*> rows;
  for (const bundles::TreeProcess& process : related.processes) rows.push_back(&process);
  std::stable_sort(rows.begin() + 1, rows.end(),
                   [](const auto* a, const auto* b) { return a->live_bytes > b->live_bytes; });
  const std::size_t shown = full ? rows.size() : std::min(rows.size(), kShownProcesses);
  std::string text = fmt::format("  {:>7}  {:<16} {:<10} {:>10} {:>10} {:>10}  {}\n", "pid",
                                 "program", "relation", "live", "RSS", "peak", "outcome");
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < shown)
      text += tree_line(*rows[i]);
    else
      rest += rows[i]->live_bytes;
  }
  if (shown < rows.size())
    text += fmt::format("  and {} with {} together: --full\n",
                        plural(rows.size() - shown, "other", "others"), size_text(rest));
  if (related.left_out != 0)
    text += fmt::format("  {} not read\n",
                        plural(related.left_out, "recording was", "recordings were"));
  return text;
}

std::string others_text(const bundles::Processes& related, const bundles::Source& source,
                        const verdict::Verdict& verdict) {
  const std::uint64_t limit = source.recording->header().health.cgroup_limit_bytes;
  const bool limited = limit != 0 && limit != session::kUnlimited;
  if (!limited && !verdict::is_death_caused_by_memory(verdict.code)) return {};
  std::string text;
  for (const bundles::OtherProcess& process : related.others)
    text += fmt::format("{} {:<10} {:>10} {:>10}\n", program_text(process.pid, process.program),
                        process.is_recorded ? "recorded" : "", "", size_or_dash(process.rss_bytes));
  return text;
}

std::optional<Episode> episode_of(const bundles::Source& source) {
  if (source.bundle.empty() || source.is_job()) return std::nullopt;
  std::vector<bundles::BundleSummary> all = bundles::bundles_in({source.bundle.parent_path()});
  const auto own = std::ranges::find_if(
      all, [&](const bundles::BundleSummary& bundle) { return bundle.path == source.bundle; });
  if (own == all.end()) return std::nullopt;
  const std::uint32_t root = own->episode.root;
  Episode episode{{}, file_name_of(all[root]), own->episode.role, {}};
  for (bundles::BundleSummary& bundle : all) {
    if (bundle.episode.root != root) continue;
    if (is_outcome_of_job(bundle)) episode.job_outcome = bundle.outcome;
    episode.bundles.push_back(std::move(bundle));
  }
  return episode;
}

Json episode_json(const std::optional<Episode>& episode) {
  if (!episode) return nullptr;
  Json rows = Json::array();
  for (const bundles::BundleSummary& bundle : episode->bundles)
    rows.push_back({{"bundle", file_name_of(bundle)},
                    {"role", name_of(bundle.episode.role)},
                    {"verdict", text_or_null(bundle.verdict)},
                    {"outcome", text_or_null(bundle.outcome)}});
  return {{"root", episode->root},
          {"role", name_of(episode->role)},
          {"bundles", std::move(rows)},
          {"job_outcome", text_or_null(episode->job_outcome)}};
}

std::string episode_text(const Episode& episode, const bundles::Source& source) {
  std::string lines;
  for (const bundles::BundleSummary& bundle : episode.bundles) {
    const std::string name = file_name_of(bundle);
    if (name == source.bundle.filename()) continue;
    lines += fmt::format("  {:<12} {:<25} {:<11} {}\n", name_of(bundle.episode.role),
                         printable(bundle.verdict.empty() ? "?" : bundle.verdict),
                         printable(bundle.outcome.empty() ? "?" : bundle.outcome), printable(name));
  }
  return lines;
}

std::string job_outcome_text(const Episode& episode) {
  const std::string& outcome = episode.job_outcome;
  if (outcome.empty()) return {};
  return outcome.starts_with(kExited) ? fmt::format("its job ended with exit status {}",
                                                    printable(outcome.substr(kExited.size())))
                                      : fmt::format("its job ended: {}", printable(outcome));
}

}  // namespace oomrec::tools::sections
