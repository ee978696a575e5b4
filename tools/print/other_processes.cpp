#include "tools/print/other_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "tools/base/directory.h"
#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownProcesses = 12;
constexpr const char* kSelf = "self";

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

Json number_or_null(const Json& row, std::string_view key) {
  const auto number = number_of(row, key);
  return number ? Json(*number) : Json(nullptr);
}

Json word_of(const Json& row, std::string_view key) {
  return text_or_null(printable(text_of(row, key).value_or("")));
}

Json member_row(const Json& row, const bundles::Source& source,
                const std::map<std::string, fs::path>& bundles) {
  std::string bundle = text_of(row, "bundle").value_or("");
  std::string outcome = text_of(row, "outcome").value_or("unknown");
  const std::string relation = text_of(row, "relation").value_or("");
  const auto later = bundles.find(text_of(row, "process").value_or(""));
  if (relation == kSelf) {
    outcome = source.outcome();
  } else if (later != bundles.end()) {
    if (bundle.empty()) bundle = later->second.filename();
    const auto final_outcome = text_of(read_json(later->second, "metadata.json"), "outcome");
    if (is_provisional(outcome) && final_outcome && *final_outcome != name_of(OutcomeKind::running))
      outcome = *final_outcome;
  }
  return {
      {"pid", number_or_null(row, "pid")},
      {"ppid", number_or_null(row, "ppid")},
      {"program", word_of(row, "program")},
      {"relation", printable(relation)},
      {"live_bytes", number_or_null(row, "live_bytes")},
      {"peak_bytes", number_or_null(row, "peak_bytes")},
      {"rss_bytes", number_or_null(row, "rss_bytes")},
      {"outcome", printable(outcome)},
      {"bundle", text_or_null(printable(bundle))},
  };
}

Json other_row(const Json& row) {
  return {{"pid", number_or_null(row, "pid")},
          {"program", word_of(row, "program")},
          {"rss_bytes", number_or_null(row, "rss_bytes")},
          {"recorded", member(row, "recorded") == Json(true)}};
}

std::string size_or_dash(const Json& row, std::string_view key) {
  const auto bytes = number_of(row, key);
  return bytes ? size_text(*bytes) : "-";
}

std::string pid_text(const Json& row) {
  return fmt::format("{}", number_of(row, "pid").value_or(0));
}

std::string group_line(const Json& row) {
  const std::string bundle = text_of(row, "bundle").value_or("");
  const bool has_other_bundle = !bundle.empty() && row["relation"] != kSelf;
  return fmt::format("  {:>7}  {:<16} {:<10} {:>10} {:>10} {:>10}  {}{}\n", pid_text(row),
                     clip(text_of(row, "program").value_or("?"), 16),
                     text_of(row, "relation").value_or(""), size_or_dash(row, "live_bytes"),
                     size_or_dash(row, "rss_bytes"), size_or_dash(row, "peak_bytes"),
                     text_of(row, "outcome").value_or(""), has_other_bundle ? "  " + bundle : "");
}

}  // namespace

Json related_processes(const bundles::Source& source) {
  Json related = {{"processes", nullptr}, {"others", nullptr}, {"left_out", 0}};
  if (source.bundle.empty()) return related;
  const Json file = read_json(source.bundle, "processes.json");
  const Json &members = member(file, "processes"), &others = member(file, "others");
  if (!members.is_array() || !others.is_array()) return related;
  related["left_out"] = number_of(file, "left_out").value_or(0);
  const auto bundles = members.size() > 1 ? latest_bundles(source.bundle.parent_path())
                                          : std::map<std::string, fs::path>{};
  related["processes"] = Json::array();
  for (const Json& row : members) related["processes"].push_back(member_row(row, source, bundles));
  related["others"] = Json::array();
  for (const Json& row : others) related["others"].push_back(other_row(row));
  return related;
}

std::string group_text(const Json& related, bool full) {
  const Json& members = related["processes"];
  if (members.size() < 2) return {};
  std::vector<const Json*> rows;
  for (const Json& row : members) rows.push_back(&row);
  std::stable_sort(rows.begin() + 1, rows.end(), [](const Json* a, const Json* b) {
    return number_of(*a, "live_bytes").value_or(0) > number_of(*b, "live_bytes").value_or(0);
  });
  const std::size_t shown = full ? rows.size() : std::min(rows.size(), kShownProcesses);
  std::string text = fmt::format("  {:>7}  {:<16} {:<10} {:>10} {:>10} {:>10}  {}\n", "pid",
                                 "program", "relation", "live", "RSS", "peak", "outcome");
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < shown)
      text += group_line(*rows[i]);
    else
      rest += number_of(*rows[i], "live_bytes").value_or(0);
  }
  if (shown < rows.size())
    text += fmt::format("  and {} with {} together: --full\n",
                        plural(rows.size() - shown, "other", "others"), size_text(rest));
  if (const std::uint64_t left_out = *number_of(related, "left_out"); left_out != 0)
    text += fmt::format("  {} not read\n", plural(left_out, "recording was", "recordings were"));
  return text;
}

std::string others_text(const Json& related, const bundles::Source& source,
                        const verdict::Verdict& verdict) {
  const std::uint64_t limit = source.recording->header().health.cgroup_limit_bytes;
  const bool limited = limit != 0 && limit != session::kUnlimited;
  if (!limited && !verdict::is_death_caused_by_memory(verdict.code)) return {};
  std::string text;
  for (const Json& row : related["others"])
    text += fmt::format("  {:>7}  {:<16} {:<10} {:>10} {:>10}\n", pid_text(row),
                        clip(text_of(row, "program").value_or("?"), 16),
                        row["recorded"] == Json(true) ? "recorded" : "", "",
                        size_or_dash(row, "rss_bytes"));
  return text;
}

}  // namespace oomrec::tools::print
