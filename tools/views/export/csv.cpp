// Rows as comma-separated values (tools/base/csv.h), one an entry; the first line names the
// columns, and a stack is one cell: "outermost;…;innermost".
#include <fmt/format.h>

#include <algorithm>

#include "tools/base/csv.h"
#include "tools/views/export/format.h"
#include "tools/views/export/records.h"

namespace oomrec::tools::views {
namespace {

// Column names and cells of a record; what is nested becomes "live.bytes".
void flatten(const Json& record, const std::string& prefix, std::vector<std::string>& names,
             std::vector<std::string>& cells) {
  for (const auto& [key, value] : record.items()) {
    const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
    if (value.is_object()) {
      flatten(value, name, names, cells);
    } else {
      names.push_back(name);
      cells.push_back(csv_cell(value));
    }
  }
}

class Table {
 public:
  Table(const Exported& exported, Output& output) : exported_(exported), output_(output) {}

  void write() {
    const recording::Recording& recording = exported_.recording();
    switch (exported_.what[0]) {
      case What::holders:
        add_names(holder_record({}), true);
        for (const HolderRow& row : holder_rows(recording, exported_.stacks, exported_.selection))
          add(holder_record(row), stack_cell(row.stack));
        break;
      case What::events:
        add_names(event_record(recording, {}), true);
        for (const EventRow& row : event_rows(recording)) {
          const recording::StackId stack = exported_stack(exported_.stacks, row.node);
          add(event_record(recording, row), row.node != 0 ? stack_cell(stack) : ",");
        }
        break;
      case What::timeline: {
        const recording::Timeline timeline = recording::timeline_of(recording);
        if (!timeline.moments.empty())
          add_names(moment_record(recording, timeline.moments.back()), false);
        for (const recording::Moment& moment : timeline.moments)
          add(moment_record(recording, moment), "");
      }
    }
  }

 private:
  void add_names(const Json& record, bool stack) {
    std::vector<std::string> cells;
    flatten(record, "", names_, cells);
    line(names_, stack ? ",stack" : "");
  }

  // Under the names: a GPU that the program met later has no column before.
  void add(const Json& record, const std::string& stack) {
    std::vector<std::string> names;
    std::vector<std::string> cells;
    flatten(record, "", names, cells);
    if (names != names_) {
      std::vector<std::string> under;
      for (const std::string& name : names_) {
        const auto at = std::find(names.begin(), names.end(), name);
        under.push_back(at == names.end() ? ""
                                          : cells[static_cast<std::size_t>(at - names.begin())]);
      }
      cells = std::move(under);
    }
    line(cells, stack);
  }

  void line(const std::vector<std::string>& cells, const std::string& end) {
    std::string text;
    for (const std::string& one : cells) text += (text.empty() ? "" : ",") + one;
    output_.write(text + end + "\n");
  }

  std::string stack_cell(recording::StackId stack) const {
    std::string text;
    const std::vector<recording::PlaceId> frames = frames_of(exported_.stacks, stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += (text.empty() ? "" : ";") + frame_name(exported_.places(), *frame);
    return "," + csv_cell(std::move(text));
  }

  const Exported& exported_;
  Output& output_;
  std::vector<std::string> names_;
};

}  // namespace

void write_csv(const Exported& exported, Output& output) { Table{exported, output}.write(); }

}  // namespace oomrec::tools::views
