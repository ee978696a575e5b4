#include "tools/views/bundle_list/bundle_list.h"

#include <fmt/format.h>

#include <string>

#include "tools/base/text.h"

namespace oomrec::tools::views {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : printable(text); }

void print_bundles(const std::vector<bundles::BundleSummary>& bundles, const Terminal& terminal) {
  const std::string header = fmt::format("{:<20} {:<17} {:<25} {:<11} {:<12} {:>10}", "created",
                                         "trigger", "verdict", "outcome", "program", "size");
  fmt::print("{}\n", terminal.paint(Colour::bold, header));
  for (const bundles::BundleSummary& bundle : bundles) {
    fmt::print("{:<20} {:<17} {:<25} {:<11} {:<12} {:>10}\n",
               clip(or_unknown(bundle.created_at_utc), 20), clip(or_unknown(bundle.trigger), 17),
               clip(or_unknown(bundle.verdict), 25), clip(or_unknown(bundle.outcome), 11),
               clip(or_unknown(bundle.program), 12), size_text(bundle.bytes));
    fmt::print("  {}\n", terminal.paint(Colour::dim,
                                        clip_start(printable(bundle.path.string()), kColumns - 2)));
  }
}

void print_sessions(const std::vector<bundles::Session>& sessions, const Terminal& terminal) {
  fmt::print("{}\n", terminal.paint(Colour::bold, "recordings"));
  for (const bundles::Session& session : sessions) {
    fmt::print("  {:<8} {:>8}  {}\n", session.alive ? "running" : "dead", session.pid,
               clip_start(printable(session.path.string()), kColumns - 21));
  }
}

Json bundle_json(const bundles::BundleSummary& bundle) {
  return {
      {"bundle", bundle.path.string()},
      {"created_at_utc", text_or_null(bundle.created_at_utc)},
      {"trigger", text_or_null(bundle.trigger)},
      {"verdict", text_or_null(bundle.verdict)},
      {"outcome", text_or_null(bundle.outcome)},
      {"program", text_or_null(bundle.program)},
      {"pid", bundle.pid != 0 ? Json(bundle.pid) : Json(nullptr)},
      {"bytes", bundle.bytes},
  };
}

Json session_json(const bundles::Session& session) {
  return {{"recording", session.path.string()}, {"pid", session.pid}, {"alive", session.alive}};
}

template <class Row>
Json rows_json(const std::vector<Row>& rows, Json (*json_of)(const Row&)) {
  Json array = Json::array();
  for (const Row& row : rows) array.push_back(json_of(row));
  return array;
}

}  // namespace

void print_bundle_list(const BundleList& list, const Terminal& terminal) {
  if (!list.bundles.empty()) print_bundles(list.bundles, terminal);
  if (!list.bundles.empty() && !list.recordings.empty()) fmt::print("\n");
  if (!list.recordings.empty()) print_sessions(list.recordings, terminal);
}

Json bundles_json(const BundleList& list) { return rows_json(list.bundles, bundle_json); }
Json recordings_json(const BundleList& list) { return rows_json(list.recordings, session_json); }

}  // namespace oomrec::tools::views
