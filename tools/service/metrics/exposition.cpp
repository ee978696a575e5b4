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

  // Of the process or program whose labels those are, already as text.
  void of(std::string_view base) { base_ = base; }

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
                  const bool (&is_here)[session::kVendors]) {
  const auto add = [&](ApiSet set) {
    for (const Api api : refusable_apis(set)) {
      const auto found = figures.counts.failures.find(api);
      const std::uint64_t count = found == figures.counts.failures.end() ? 0 : found->second;
      family.add(count, {{"api", api_label(api)}});
    }
  };
  add(ApiSet::host);
  // A program has them before its first process has reached the driver.
  const bool* const reached = row.pid ? figures.reached : is_here;
  if (reached[static_cast<std::size_t>(session::Vendor::cuda)]) add(ApiSet::cuda);
  if (reached[static_cast<std::size_t>(session::Vendor::hip)]) add(ApiSet::hip);
}

// A driver is known to be there when its device is, or when somebody has reached it.
void see_drivers(const std::map<SeriesRow, RowFigures>& rows, bool (&is_here)[session::kVendors]) {
  constexpr std::array kDevices = {"/dev/nvidiactl", "/dev/kfd"};
  for (std::size_t vendor = 0; vendor < session::kVendors; ++vendor) {
    std::error_code error;
    is_here[vendor] = std::filesystem::exists(kDevices[vendor], error);
    for (const auto& [row, figures] : rows)
      is_here[vendor] = is_here[vendor] || figures.reached[vendor];
  }
}

struct Drivers {
  bool are_here[session::kVendors] = {};
};

struct FamilyRow {
  std::string_view name, type, help;
  void (*add)(Family&, const SeriesRow&, const RowFigures&, const Drivers&);
};

// clang-format off
constexpr auto kFamilies = std::to_array<FamilyRow>({
  {"live_bytes", "gauge", "Bytes that are allocated now, by space. torch lies inside the other spaces.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [space, bytes] : figures.gauges.spaces) family.add(bytes.live, {{"space", name_of(space)}});
   }},
  {"peak_bytes", "gauge", "Most bytes that one process has had allocated at a time, by space.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [space, bytes] : figures.gauges.spaces) family.add(bytes.peak, {{"space", name_of(space)}});
   }},
  {"rss_bytes", "gauge", "Resident memory. Pages that processes share count in each of them.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.gauges.rss_bytes); }},
  {"device_used_bytes", "gauge", "Memory of a GPU that is in use, by whichever process, as its driver told last.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [name, bytes] : figures.gauges.devices) family.add(bytes.used, {{"device", name.first}, {"uuid", name.second}});
   }},
  {"device_total_bytes", "gauge", "Memory that a GPU has.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [name, bytes] : figures.gauges.devices) family.add(bytes.total, {{"device", name.first}, {"uuid", name.second}});
   }},
  {"limit_bytes", "gauge", "Limits that are in force, by kind; the lowest where processes differ.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const auto& [kind, bytes] : figures.gauges.limits) family.add(bytes, {{"kind", name_of(kind)}});
   }},
  {"headroom_bytes", "gauge", "What is left to the limit that is nearest in proportion; of the process that is nearest.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     if (figures.gauges.nearest) family.add(figures.gauges.nearest->headroom_bytes);
   }},
  {"headroom_ratio", "gauge", "The same as a part of that limit: 0 is reached, 1 is untouched.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     if (figures.gauges.nearest) family.add(figures.gauges.nearest->headroom_ratio());
   }},
  {"processes", "gauge", "Recorded processes that live; 0 for one that is dead.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.living); }},
  {"failures_total", "counter", "Requests for memory that were refused, by the function that was called.",
   [](Family& family, const SeriesRow& row, const RowFigures& figures, const Drivers& drivers) { add_failures(family, row, figures, drivers.are_here); }},
  {"bundles_total", "counter", "Bundles that were written, by trigger.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const Trigger trigger : counted_triggers()) family.add(figures.counts.bundles[static_cast<std::size_t>(trigger)], {{"trigger", name_of(trigger)}});
   }},
  {"deaths_total", "counter", "Processes that ended, by verdict; exited: by themselves.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) {
     for (const VerdictCode verdict : verdicts_of_deaths()) family.add(figures.counts.deaths[static_cast<std::size_t>(verdict)], {{"verdict", name_of(verdict)}});
   }},
  {"events_total", "counter", "Events that were recorded with their stack.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.counts.events); }},
  {"dropped_events_total", "counter", "Events that were not recorded because a table was full.",
   [](Family& family, const SeriesRow&, const RowFigures& figures, const Drivers&) { family.add(figures.counts.dropped_events); }},
});
// clang-format on

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
                       std::optional<Attendant::Clock::time_point> last_scrape) {
  for (auto& row : rows)
    if (last_scrape && row.second.born >= *last_scrape) row.second.counts = {};
  Drivers drivers;
  see_drivers(rows, drivers.are_here);
  std::vector<std::string> bases;
  bases.reserve(rows.size());
  for (const auto& [row, figures] : rows) bases.push_back(base_labels(row));
  std::string text = fmt::format(
      "# HELP oomrec_build_info The oomrec that watches.\n# TYPE oomrec_build_info gauge\n"
      "oomrec_build_info{{version=\"{}\"}} 1\n",
      OOMREC_VERSION);
  for (const FamilyRow& each : kFamilies) {
    fmt::format_to(std::back_inserter(text), "# HELP oomrec_{} {}\n# TYPE oomrec_{} {}\n",
                   each.name, each.help, each.name, each.type);
    Family family{text, each.name};
    auto base = bases.begin();
    for (const auto& [row, figures] : rows) {
      family.of(*base++);
      each.add(family, row, figures, drivers);
    }
  }
  return text;
}

}  // namespace oomrec::tools::service
