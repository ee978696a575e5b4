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
    const Json manifest = read_json(path, "manifest.json");
    const std::pair candidate{text_of(manifest, "created_at_utc").value_or(""), path};
    if (const auto process = text_of(manifest, "process"))
      latest[*process] = std::max(latest[*process], candidate);
  }
  std::map<std::string, fs::path> bundles;
  for (auto& [process, bundle] : latest) bundles[process] = bundle.second;
  return bundles;
}

bool is_provisional(const std::string& outcome) {
  return outcome == name_of(OutcomeKind::running) || outcome == name_of(OutcomeKind::unknown);
}

std::string word_of(const Json& row, std::string_view key) {
  return printable(text_of(row, key).value_or(""));
}

OtherProcess other_in(const Json& row) {
  return {number_of(row, "pid"), number_of(row, "rss_bytes"), word_of(row, "program"),
          member(row, "recorded") == Json(true)};
}

TreeProcess member_in(const Json& row, const bundles::Source& source,
                      const std::map<std::string, fs::path>& bundles) {
  TreeProcess process{other_in(row),
                      number_of(row, "ppid"),
                      number_of(row, "live_bytes"),
                      number_of(row, "peak_bytes"),
                      word_of(row, "relation"),
                      text_of(row, "outcome").value_or("unknown"),
                      text_of(row, "bundle").value_or("")};
  const auto later = bundles.find(text_of(row, "process").value_or(""));
  if (process.is_self()) {
    process.outcome = source.outcome();
  } else if (later != bundles.end()) {
    if (process.bundle.empty()) process.bundle = later->second.filename();
    const auto final_outcome = text_of(read_json(later->second, "metadata.json"), "outcome");
    if (is_provisional(process.outcome) && final_outcome &&
        *final_outcome != name_of(OutcomeKind::running))
      process.outcome = *final_outcome;
  }
  process.outcome = printable(process.outcome);
  process.bundle = printable(process.bundle);
  return process;
}

Json json_of(const std::optional<std::uint64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

std::string size_or_dash(const std::optional<std::uint64_t>& bytes) {
  return bytes ? size_text(*bytes) : "-";
}

std::string program_text(const OtherProcess& process) {
  return fmt::format("  {:>7}  {:<16}", process.pid.value_or(0),
                     clip(process.program.empty() ? "?" : process.program, 16));
}

std::string tree_line(const TreeProcess& process) {
  const bool has_other_bundle = !process.bundle.empty() && !process.is_self();
  return fmt::format("{} {:<10} {:>10} {:>10} {:>10}  {}{}\n", program_text(process),
                     process.relation, size_or_dash(process.live_bytes),
                     size_or_dash(process.rss_bytes), size_or_dash(process.peak_bytes),
                     process.outcome, has_other_bundle ? "  " + process.bundle : "");
}

std::string file_name_of(const bundles::BundleSummary& bundle) {
  return bundle.path.filename().string();
}

bool is_outcome_of_job(const bundles::BundleSummary& bundle) {
  return bundle.verdict == name_of(VerdictCode::child_killed) &&
         bundle.episode.role == bundle::EpisodeRole::consequence;
}

}  // namespace

std::optional<RelatedProcesses> related_processes(const bundles::Source& source) {
  if (source.bundle.empty()) return std::nullopt;
  const Json file = read_json(source.bundle, "processes.json");
  const Json &members = member(file, "processes"), &others = member(file, "others");
  if (!members.is_array() || !others.is_array()) return std::nullopt;
  RelatedProcesses related;
  related.left_out = number_of(file, "left_out").value_or(0);
  const auto bundles = members.size() > 1 ? latest_bundles(source.bundle.parent_path())
                                          : std::map<std::string, fs::path>{};
  for (const Json& row : members) related.tree.push_back(member_in(row, source, bundles));
  for (const Json& row : others) related.others.push_back(other_in(row));
  return related;
}

Json tree_json(const std::optional<RelatedProcesses>& related) {
  if (!related) return nullptr;
  Json rows = Json::array();
  for (const TreeProcess& process : related->tree)
    rows.push_back({{"pid", json_of(process.pid)},
                    {"ppid", json_of(process.parent_pid)},
                    {"program", text_or_null(process.program)},
                    {"relation", process.relation},
                    {"live_bytes", json_of(process.live_bytes)},
                    {"peak_bytes", json_of(process.peak_bytes)},
                    {"rss_bytes", json_of(process.rss_bytes)},
                    {"outcome", process.outcome},
                    {"bundle", text_or_null(process.bundle)}});
  return rows;
}

Json others_json(const std::optional<RelatedProcesses>& related) {
  if (!related) return nullptr;
  Json rows = Json::array();
  for (const OtherProcess& process : related->others)
    rows.push_back({{"pid", json_of(process.pid)},
                    {"program", text_or_null(process.program)},
                    {"rss_bytes", json_of(process.rss_bytes)},
                    {"recorded", process.is_recorded}});
  return rows;
}

std::string tree_text(const RelatedProcesses& related, bool full) {
  if (related.tree.size() < 2) return {};
  std::vector<const TreeProcess*> rows;
  for (const TreeProcess& process : related.tree) rows.push_back(&process);
  std::stable_sort(rows.begin() + 1, rows.end(), [](const TreeProcess* a, const TreeProcess* b) {
    return a->live_bytes.value_or(0) > b->live_bytes.value_or(0);
  });
  const std::size_t shown = full ? rows.size() : std::min(rows.size(), kShownProcesses);
  std::string text = fmt::format("  {:>7}  {:<16} {:<10} {:>10} {:>10} {:>10}  {}\n", "pid",
                                 "program", "relation", "live", "RSS", "peak", "outcome");
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < shown)
      text += tree_line(*rows[i]);
    else
      rest += rows[i]->live_bytes.value_or(0);
  }
  if (shown < rows.size())
    text += fmt::format("  and {} with {} together: --full\n",
                        plural(rows.size() - shown, "other", "others"), size_text(rest));
  if (related.left_out != 0)
    text += fmt::format("  {} not read\n",
                        plural(related.left_out, "recording was", "recordings were"));
  return text;
}

std::string others_text(const RelatedProcesses& related, const bundles::Source& source,
                        const verdict::Verdict& verdict) {
  const std::uint64_t limit = source.recording->header().health.cgroup_limit_bytes;
  const bool limited = limit != 0 && limit != session::kUnlimited;
  if (!limited && !verdict::is_death_caused_by_memory(verdict.code)) return {};
  std::string text;
  for (const OtherProcess& process : related.others)
    text += fmt::format("{} {:<10} {:>10} {:>10}\n", program_text(process),
                        process.is_recorded ? "recorded" : "", "", size_or_dash(process.rss_bytes));
  return text;
}

std::optional<Episode> episode_of(const bundles::Source& source) {
  if (source.bundle.empty() || source.is_job()) return std::nullopt;
  std::vector<bundles::BundleSummary> all = bundles::bundles_in({source.bundle.parent_path()});
  const auto own = std::find_if(all.begin(), all.end(), [&](const bundles::BundleSummary& bundle) {
    return bundle.path == source.bundle;
  });
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
