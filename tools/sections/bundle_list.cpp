#include "tools/sections/bundle_list.h"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "common/verdict/kinds.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::sections {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : printable(text); }

// One below the episode's root: indented, with the time alone.
constexpr std::string_view kFolded = "  + ";

// A bundle's columns. The path has a line of its own, to be copied as a whole.
constexpr const char* kRow = "{:<20} {:<17} {:<25} {:<10} {:<16} {:>7}";

void print_row(const bundles::BundleSummary& bundle, const Terminal& terminal) {
  const bool is_root = bundle.episode.role == bundle::EpisodeRole::root;
  const std::string created = or_unknown(bundle.created_at_utc);
  const std::size_t date = created.find('T');
  const std::string time = date != std::string::npos ? created.substr(date + 1) : created;
  const std::string& program = bundle.script.empty() ? bundle.program : bundle.script;
  fmt::print("{}\n",
             fmt::format(kRow, clip(is_root ? created : std::string{kFolded} + time, 20),
                         clip(or_unknown(bundle.trigger), 17), clip(or_unknown(bundle.verdict), 25),
                         clip(or_unknown(bundle.outcome), 10), clip(or_unknown(program), 16),
                         bundle.pid != 0 ? std::to_string(bundle.pid) : "?"));
  const std::size_t indent = is_root ? 2 : kFolded.size();
  fmt::print(
      "{:{}}{}\n", "", indent,
      terminal.paint(Colour::dim, clip_start(printable(bundle.path.string()), kColumns - indent)));
}

// The episode with the newest bundle first; of each, the root, then the others.
void print_bundles(const std::vector<bundles::BundleSummary>& bundles, const Terminal& terminal) {
  const std::string header =
      fmt::format(kRow, "created", "trigger", "verdict", "outcome", "program", "pid");
  fmt::print("{}\n", terminal.paint(Colour::bold, header));
  std::set<std::uint32_t> printed;
  for (const bundles::BundleSummary& newest : bundles) {
    const std::uint32_t root = newest.episode.root;
    if (!printed.insert(root).second) continue;
    print_row(bundles[root], terminal);
    for (const bundles::BundleSummary& bundle : bundles)
      if (bundle.episode.root == root && bundle.episode.role != bundle::EpisodeRole::root)
        print_row(bundle, terminal);
  }
}

void print_sessions(const std::vector<bundles::Session>& sessions, const Terminal& terminal) {
  fmt::print("{}\n", terminal.paint(Colour::bold, "recordings"));
  for (const bundles::Session& session : sessions) {
    fmt::print("  {:<8} {:>8}  {}\n", session.alive ? "running" : "dead", session.pid,
               clip_start(printable(session.path.string()), kColumns - 21));
  }
}

Json death_json(std::string_view code) {
  const verdict::Kind* const kind = verdict::kind_named(code);
  if (kind == nullptr || kind->death == verdict::MemoryDeath::none) return nullptr;
  return verdict::kMemoryDeathNames[static_cast<std::size_t>(kind->death)];
}

// As its row has it; null: nothing is known of what it held, or it cannot be read.
Json signature_json(const bundles::BundleSummary& bundle,
                    const std::shared_ptr<const recording::CacheDirectory>& cache) try {
  const bundles::Source source = bundles::open_recorded(bundle.path.string(), cache);
  return source.is_job() ? Json(nullptr) : text_or_null(bundles::signature_of(source).key);
} catch (const std::exception&) {
  return nullptr;
}

Json bundle_json(const bundles::BundleSummary& bundle, const BundleList& list,
                 const std::shared_ptr<const recording::CacheDirectory>& cache) {
  return {
      {"bundle", bundle.path.string()},
      {"created_at_utc", text_or_null(bundle.created_at_utc)},
      {"trigger", text_or_null(bundle.trigger)},
      {"verdict", text_or_null(bundle.verdict)},
      {"death", death_json(bundle.verdict)},
      {"outcome", text_or_null(bundle.outcome)},
      {"program", text_or_null(bundle.program)},
      {"script", text_or_null(bundle.script)},
      {"pid", number_or_null(bundle.pid)},
      {"bytes", bundle.bytes},
      {"episode", list.bundles[bundle.episode.root].path.filename().string()},
      {"episode_role", name_of(bundle.episode.role)},
      {"signature", signature_json(bundle, cache)},
  };
}

Json session_json(const bundles::Session& session) {
  return {{"recording", session.path.string()}, {"pid", session.pid}, {"alive", session.alive}};
}

}  // namespace

void print_bundle_list(const BundleList& list, const Terminal& terminal) {
  if (!list.bundles.empty()) print_bundles(list.bundles, terminal);
  if (!list.bundles.empty() && !list.recordings.empty()) fmt::print("\n");
  if (!list.recordings.empty()) print_sessions(list.recordings, terminal);
}

Json bundles_json(const BundleList& list) {
  Json rows = Json::array();
  const auto cache = recording::CacheDirectory::of_user();
  for (const bundles::BundleSummary& bundle : list.bundles)
    rows.push_back(bundle_json(bundle, list, cache));
  return rows;
}

Json recordings_json(const BundleList& list) {
  Json rows = Json::array();
  for (const bundles::Session& session : list.recordings) rows.push_back(session_json(session));
  return rows;
}

}  // namespace oomrec::tools::sections
