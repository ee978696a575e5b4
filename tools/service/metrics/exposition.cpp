#include "tools/service/metrics/exposition.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "tools/base/text.h"
#include "tools/service/fleet/label_values.h"

namespace oomrec::tools::service {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

// The samples of one family.
class Family {
 public:
  Family(std::string& text, std::string_view name) : text_(text), name_(name) {}

  // Sets the labels of the process or program that the next samples belong to, as text.
  void set_base_labels(std::string_view base) { base_ = base; }

  void add(auto value, std::initializer_list<Label> labels = {}) {
    fmt::format_to(std::back_inserter(text_), "oomrec_{}{{{}", name_, base_);
    for (const auto& [name, label] : labels)
      if (!label.empty())
        fmt::format_to(std::back_inserter(text_), ",{}=\"{}\"", name, escaped_label(label));
    fmt::format_to(std::back_inserter(text_), "}} {}\n", value);
  }

 private:
  std::string& text_;
  const std::string_view name_;
  std::string_view base_;
};

void add_failures(Family& family, const SeriesRow& row, const RowFigures& figures,
                  const bool (&present)[session::kVendors]) {
  const auto add = [&](ApiSet set) {
    for (const Api api : failable_apis(set)) {
      const auto found = figures.counts.failures.find(api);
      const std::uint64_t count = found == figures.counts.failures.end() ? 0 : found->second;
      family.add(count, {{"api", api_label(api)}});
    }
  };
  add(ApiSet::host);
  // A program gets the driver's series before its first process has used the driver.
  const bool* const reached = row.pid ? figures.reached : present;
  if (reached[static_cast<std::size_t>(session::Vendor::cuda)]) add(ApiSet::cuda);
  if (reached[static_cast<std::size_t>(session::Vendor::hip)]) add(ApiSet::hip);
}

// A driver is present if its device file exists, or a process has used it.
void find_drivers(const std::map<SeriesRow, RowFigures>& rows, bool (&present)[session::kVendors]) {
  constexpr std::array kDevices = {"/dev/nvidiactl", "/dev/kfd"};
  for (std::size_t vendor = 0; vendor < session::kVendors; ++vendor) {
    std::error_code error;
    present[vendor] = std::filesystem::exists(kDevices[vendor], error);
    for (const auto& [row, figures] : rows)
      present[vendor] = present[vendor] || figures.reached[vendor];
  }
}

struct Drivers {
  bool present[session::kVendors] = {};
};

struct FamilyRow {
  std::string_view name, type, help;
  void (*add)(Family&, const SeriesRow&, const RowFigures&, const Drivers&);
};

// clang-format off
constexpr auto kFamilies = std::to_array<FamilyRow>({
  {"live_bytes", "gauge", "Live bytes by space. torch bytes count in the other spaces, too.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [space, bytes] : figures.gauges.spaces) family.add(bytes.live, {{"space", name_of(space)}});
   }},
  {"peak_bytes", "gauge", "Peak of the live bytes of one process, by space.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [space, bytes] : figures.gauges.spaces) family.add(bytes.peak, {{"space", name_of(space)}});
   }},
  {"rss_bytes", "gauge", "Resident memory. Shared pages count in each process that shares them.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.gauges.rss_bytes); }},
  {"device_used_bytes", "gauge", "Memory of a GPU in use by all processes, as its driver last reported.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [name, bytes] : figures.gauges.devices) family.add(bytes.used, {{"device", name.first}, {"uuid", name.second}});
   }},
  {"device_total_bytes", "gauge", "Total memory of a GPU.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [name, bytes] : figures.gauges.devices) family.add(bytes.total, {{"device", name.first}, {"uuid", name.second}});
   }},
  {"limit_bytes", "gauge", "Limits in force, by kind; the lowest if processes differ.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [kind, bytes] : figures.gauges.limits) family.add(bytes, {{"kind", name_of(kind)}});
   }},
  {"headroom_bytes", "gauge", "Bytes left to the limit with the lowest headroom_ratio; of the process that is nearest to it.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     if (figures.gauges.nearest) family.add(figures.gauges.nearest->headroom_bytes);
   }},
  {"headroom_ratio", "gauge", "headroom_bytes as a fraction of that limit: 0 means that it is reached.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     if (figures.gauges.nearest) family.add(figures.gauges.nearest->headroom_ratio());
   }},
  {"processes", "gauge", "Recorded processes that are alive; 0 for a dead one.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.living); }},
  {"failures_total", "counter", "Failed requests for memory, by the function that was called.",
   [](Family& family, const SeriesRow& row, const RowFigures& figures, const Drivers& drivers) { add_failures(family, row, figures, drivers.present); }},
  {"bundles_total", "counter", "Bundles written, by trigger.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const Trigger trigger : counted_triggers()) family.add(figures.counts.bundles[static_cast<std::size_t>(trigger)], {{"trigger", name_of(trigger)}});
   }},
  {"deaths_total", "counter", "Processes that ended, by verdict; exited: by themselves.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const VerdictCode verdict : death_verdicts()) family.add(figures.counts.deaths[static_cast<std::size_t>(verdict)], {{"verdict", name_of(verdict)}});
   }},
  {"memory_deaths_total", "counter", "Processes that died for lack of memory, by how certain that is.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (std::size_t i = 0; i < kCertaintyNames.size(); ++i) family.add(figures.counts.memory_deaths[i], {{"certainty", kCertaintyNames[i]}});
   }},
  {"events_total", "counter", "Events recorded with their stack.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.counts.events); }},
  {"dropped_events_total", "counter", "Events not recorded because a table was full.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.counts.dropped_events); }},
});
// clang-format on

// The families of --ship, which belong to no program.
std::string ship_families(const ShipFigures& shipped) {
  return fmt::format(
      "# HELP oomrec_shipped_total Rows and bundles that have arrived in the store.\n"
      "# TYPE oomrec_shipped_total counter\n"
      "oomrec_shipped_total{{what=\"row\"}} {}\noomrec_shipped_total{{what=\"raw\"}} {}\n"
      "# HELP oomrec_unshipped_bundles Bundles of which something is still to arrive.\n"
      "# TYPE oomrec_unshipped_bundles gauge\noomrec_unshipped_bundles {}\n"
      "# HELP oomrec_ship_errors_total Uploads that failed, and are tried again.\n"
      "# TYPE oomrec_ship_errors_total counter\noomrec_ship_errors_total {}\n",
      shipped.rows, shipped.raws, shipped.unshipped, shipped.errors);
}

// Of no program either: one cause may end several.
std::string signature_family(const std::map<std::string, SignatureCounts::Count>& signatures,
                             std::optional<PollClient::Clock::time_point> last_scrape) {
  std::string text =
      "# HELP oomrec_signature_deaths_total Deaths for lack of memory, by who held the memory.\n"
      "# TYPE oomrec_signature_deaths_total counter\n";
  for (const auto& [signature, count] : signatures) {
    const bool is_new = last_scrape && count.first_seen >= *last_scrape;
    fmt::format_to(std::back_inserter(text),
                   "oomrec_signature_deaths_total{{signature=\"{}\"}} {}\n",
                   escaped_label(signature), is_new ? 0 : count.deaths);
  }
  return text;
}

std::string base_labels(const SeriesRow& row) {
  std::string labels = fmt::format("program=\"{}\",rank=\"{}\"", escaped_label(row.program),
                                   escaped_label(row.rank));
  if (row.pid) labels += fmt::format(",pid=\"{}\"", *row.pid);
  return labels;
}

}  // namespace

std::string escaped_label(std::string_view value) {
  std::string escaped;
  for (const std::string_view line : split(value, '\n')) {
    if (line.data() != value.data()) escaped += "\\n";
    for (const char c : printable(line)) {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string exposition(std::map<SeriesRow, RowFigures> rows,
                       std::optional<PollClient::Clock::time_point> last_scrape,
                       const ShipFigures* shipped,
                       const std::map<std::string, SignatureCounts::Count>* signatures) {
  for (auto& row : rows)
    if (last_scrape && row.second.first_seen >= *last_scrape) row.second.counts = {};
  Drivers drivers;
  find_drivers(rows, drivers.present);
  std::vector<std::string> bases;
  bases.reserve(rows.size());
  for (const auto& [row, figures] : rows) bases.push_back(base_labels(row));
  std::string text = fmt::format(
      "# HELP oomrec_build_info The version of oomrec watch.\n# TYPE oomrec_build_info gauge\n"
      "oomrec_build_info{{version=\"{}\"}} 1\n",
      OOMREC_VERSION);
  if (shipped != nullptr) text += ship_families(*shipped);
  if (signatures != nullptr) text += signature_family(*signatures, last_scrape);
  for (const FamilyRow& each : kFamilies) {
    fmt::format_to(std::back_inserter(text), "# HELP oomrec_{} {}\n# TYPE oomrec_{} {}\n",
                   each.name, each.help, each.name, each.type);
    Family family{text, each.name};
    auto base = bases.begin();
    for (const auto& [row, figures] : rows) {
      family.set_base_labels(*base++);
      each.add(family, row, figures, drivers);
    }
  }
  return text;
}

}  // namespace oomrec::tools::service
