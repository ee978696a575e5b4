#include "tools/views/report/rows.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <unordered_map>

#include "tools/base/terminal.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::views {
namespace {

// Holders with the same key share a row.
using Key = std::array<std::uint64_t, 2>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<std::uint64_t>{}(key[0] * 0x9e3779b97f4a7c15U ^ key[1]);
  }
};

Key key_of(const ReportRow& row) {
  return {
      std::uint64_t{row.stack.node} << 32 | std::uint64_t{row.stack.group} << 16 | row.stack.label,
      std::uint64_t{row.process} << 32 | std::uint64_t{row.device} << 16 |
          static_cast<std::uint64_t>(row.space)};
}

void add_figures(recording::HolderFigures& sum, const recording::HolderFigures& part) {
  sum.estimated = sum.estimated || part.estimated;
  if (sum.resident_bytes) *sum.resident_bytes += part.resident_bytes.value_or(part.live_bytes);
  sum.live_bytes += part.live_bytes;
  sum.live_count += part.live_count;
  sum.peak_bytes += part.peak_bytes;
  sum.peak_count += part.peak_count;
  sum.total_bytes += part.total_bytes;
  sum.total_count += part.total_count;
  sum.temporary_count += part.temporary_count;
  if (part.oldest_ns && (!sum.oldest_ns || *part.oldest_ns < *sum.oldest_ns))
    sum.oldest_ns = part.oldest_ns;
}

// Splits holders of GPU memory by device.
class DeviceParts {
 public:
  // A device's number is 1 + the index of its label in `labels`.
  DeviceParts(const recording::Recording& recording, const std::vector<std::string>& labels) {
    const std::vector<recording::DeviceFigures> devices = recording::devices_of(recording, 0);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto at = std::ranges::find(labels, devices[i].label);
      const auto number =
          static_cast<std::uint8_t>(at == labels.end() ? 0 : at - labels.begin() + 1);
      only_device_ = i == 0 ? number : std::uint8_t{0};
      for (const recording::HolderFigures& part :
           recording::holders_on(recording, devices[i].entry))
        parts_[part.entry].push_back({number, part});
    }
  }

  // Calls visit(row) for each device that the holder has memory on. Only live blocks have a device,
  // so peak and totals stay with the first row, or with none.
  template <class Visit>
  void for_each(ReportRow row, Visit&& visit) const {
    if (row.space == Space::cuda || row.space == Space::hip) {
      row.device = only_device_;
      const auto parts = parts_.find(row.figures.entry);
      if (only_device_ == 0 && parts != parts_.end()) {
        if (parts->second.size() == 1) row.device = parts->second.front().device;
        if (parts->second.size() > 1) split(row, parts->second, visit);
      }
    }
    visit(row);
  }

 private:
  struct Part {
    std::uint8_t device;
    recording::HolderFigures figures;
  };

  // `row` keeps what is on no device. Pages of a device are not looked at.
  template <class Visit>
  static void split(ReportRow& row, const std::vector<Part>& parts, Visit&& visit) {
    for (const Part& part : parts) {
      ReportRow on_device = row;
      on_device.device = part.device;
      on_device.figures = part.figures;
      on_device.figures.live_bytes = std::min(part.figures.live_bytes, row.figures.live_bytes);
      on_device.figures.live_count = std::min(part.figures.live_count, row.figures.live_count);
      on_device.figures.oldest_ns = row.figures.oldest_ns;
      on_device.figures.resident_bytes.reset();
      row.figures.live_bytes -= on_device.figures.live_bytes;
      row.figures.live_count -= on_device.figures.live_count;
      visit(on_device);
    }
    row.figures.resident_bytes.reset();
  }

  std::unordered_map<std::uint32_t, std::vector<Part>> parts_;  // by holder
  std::uint8_t only_device_ = 0;                                // 0: several devices, or none
};

// Labels of a recording's devices, at most as many as fit into a row's device number.
std::vector<std::string> labels_of(const recording::Recording& recording) {
  std::vector<std::string> labels;
  for (const recording::DeviceFigures& device : recording::devices_of(recording, 0))
    labels.push_back(device.label);
  labels.resize(std::min<std::size_t>(labels.size(), std::numeric_limits<std::uint8_t>::max()));
  return labels;
}

double age_ms(const recording::HolderFigures& figures, std::uint64_t end_ns) {
  if (!figures.oldest_ns) return -1;
  const std::uint64_t age_ns = end_ns - std::min(*figures.oldest_ns, end_ns);
  const std::uint64_t whole_ms = age_ns / 1'000'000;
  return static_cast<double>(whole_ms);
}

}  // namespace

ReportRows::ReportRows(const recording::Recording& recording, NamedStacks& stacks,
                       std::uint16_t process, const Json& job)
    : devices_(labels_of(recording)) {
  if (const Json& ranks = member(job, "ranks"); ranks.is_array()) {
    for (std::uint16_t index = 0; index < std::min<std::size_t>(ranks.size(), 0xffff); ++index)
      if (const auto rank = number_of(ranks[index], "rank"))
        indices_.emplace(static_cast<std::uint32_t>(*rank), index);
  }
  add(recording, stacks, process, row_of_);
}

void ReportRows::add_process(const recording::Recording& recording, NamedStacks& stacks,
                             std::uint16_t process) {
  std::vector<std::uint32_t> row_of;
  add(recording, stacks, process, row_of);
}

std::uint16_t ReportRows::process_of(const NamedStack& stack, std::uint16_t otherwise) const {
  const auto index = stack.rank == 0 ? indices_.end() : indices_.find(stack.rank - 1);
  return index == indices_.end() ? otherwise : index->second;
}

void ReportRows::add(const recording::Recording& recording, NamedStacks& stacks,
                     std::uint16_t process, std::vector<std::uint32_t>& row_of) {
  std::unordered_map<Key, std::uint32_t, KeyHash> row_numbers;
  const std::size_t first = rows_.size();
  const auto add_row = [&](const ReportRow& row) {
    const auto [at, is_new] =
        row_numbers.try_emplace(key_of(row), static_cast<std::uint32_t>(rows_.size()));
    if (is_new)
      rows_.push_back(row);
    else
      add_figures(rows_[at->second].figures, row.figures);
    row_of[row.figures.entry] = at->second + 1;
  };
  std::vector<recording::HolderFigures> holders = recording.holders();
  recording.add_ages(holders);
  row_of.resize(recording.view().count(session::TableId::holders));
  const DeviceParts device_parts{recording, devices_};
  Progress progress{"naming stacks", holders.size()};
  for (const recording::HolderFigures& holder : holders) {
    progress.step();
    if (holder.total_count == 0 && holder.live_count == 0 && holder.weight_bytes() == 0) continue;
    const NamedStack stack = stacks.of_node(holder.node);
    device_parts.for_each({stack, holder.space, 0, process_of(stack, process), -1, holder},
                          add_row);
  }
  const std::uint64_t end_ns = recording.end_ns();
  for (std::size_t i = first; i < rows_.size(); ++i)
    rows_[i].oldest_ms = age_ms(rows_[i].figures, end_ns);
}

std::optional<std::uint32_t> ReportRows::row_of(std::uint32_t holder) const {
  if (holder >= row_of_.size() || row_of_[holder] == 0) return std::nullopt;
  return row_of_[holder] - 1;
}

void ReportRows::add_to(Container& container) const {
  const auto column = [&](const char* name, auto value) {
    std::vector<decltype(value(rows_[0]))> values;
    values.reserve(rows_.size());
    for (const ReportRow& row : rows_) values.push_back(value(row));
    container.add(name, values);
  };
  const auto figure = [&](const char* name, std::uint64_t recording::HolderFigures::*member) {
    column(name, [&](const ReportRow& row) { return static_cast<double>(row.figures.*member); });
  };
  column("row_node", [](const ReportRow& row) { return row.stack.node; });
  column("row_group", [](const ReportRow& row) { return row.stack.group; });
  column("row_label", [](const ReportRow& row) { return row.stack.label; });
  column("row_space", [](const ReportRow& row) { return static_cast<std::uint8_t>(row.space); });
  column("row_device", [](const ReportRow& row) { return row.device; });
  column("row_process", [](const ReportRow& row) { return row.process; });
  column("row_estimated",
         [](const ReportRow& row) { return static_cast<std::uint8_t>(row.figures.estimated); });
  figure("row_live_bytes", &recording::HolderFigures::live_bytes);
  column("row_resident_bytes", [](const ReportRow& row) {
    const auto& resident = row.figures.resident_bytes;
    return resident ? static_cast<double>(*resident) : -1;
  });
  figure("row_live_count", &recording::HolderFigures::live_count);
  figure("row_peak_bytes", &recording::HolderFigures::peak_bytes);
  figure("row_peak_count", &recording::HolderFigures::peak_count);
  figure("row_total_bytes", &recording::HolderFigures::total_bytes);
  figure("row_total_count", &recording::HolderFigures::total_count);
  figure("row_temporary_count", &recording::HolderFigures::temporary_count);
  column("row_oldest_ms", [](const ReportRow& row) { return row.oldest_ms; });
}

}  // namespace oomrec::tools::views
