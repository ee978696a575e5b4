// Rows as comma-separated values (tools/base/csv.h). The first line names the columns. A stack is
// one cell: "outermost;…;innermost".
#include <fmt/format.h>

#include <algorithm>

#include "tools/base/csv.h"
#include "tools/views/export/format.h"
#include "tools/views/export/records.h"

namespace oomrec::tools::views {
namespace {

// Column names and cells of a record. Nested members get names such as "live.bytes".
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
  Table(const ExportRequest& request, Output& output) : request_(request), output_(output) {}

  void write() {
    const recording::Recording& recording = request_.recording();
    switch (request_.contents[0]) {
      case Content::holders:
        add_names(holder_record({}), StackColumn::present);
        for (const HolderRow& row : holder_rows(recording, request_.stacks, request_.selection))
          add(holder_record(row), stack_cell(row.stack));
        break;
      case Content::events:
        add_names(event_record(recording, {}), StackColumn::present);
        for (const EventRow& row : event_rows(recording)) {
          const recording::StackId stack = exported_stack(request_.stacks, row.node);
          add(event_record(recording, row), row.node != 0 ? stack_cell(stack) : ",");
        }
        break;
      case Content::timeline: {
        const recording::Timeline timeline = recording::timeline_of(recording);
        if (!timeline.moments.empty())
          add_names(moment_record(recording, timeline.moments.back()), StackColumn::absent);
        for (const recording::Moment& moment : timeline.moments)
          add(moment_record(recording, moment), "");
      }
    }
  }

 private:
  enum class StackColumn { present, absent };

  void add_names(const Json& record, StackColumn stack) {
    std::vector<std::string> cells;
    flatten(record, "", names_, cells);
    line(names_, stack == StackColumn::present ? ",stack" : "");
  }

  // Puts each cell under its name: earlier records lack the columns of a GPU that was first used
  // later.
  void add(const Json& record, const std::string& stack) {
    std::vector<std::string> names;
    std::vector<std::string> cells;
    flatten(record, "", names, cells);
    if (names != names_) {
      std::vector<std::string> ordered;
      for (const std::string& name : names_) {
        const auto at = std::ranges::find(names, name);
        ordered.push_back(at == names.end() ? ""
                                            : cells[static_cast<std::size_t>(at - names.begin())]);
      }
      cells = std::move(ordered);
    }
    line(cells, stack);
  }

  void line(const std::vector<std::string>& cells, const std::string& end) {
    std::string text;
    for (const std::string& cell : cells) text += (text.empty() ? "" : ",") + cell;
    output_.write(text + end + "\n");
  }

  std::string stack_cell(recording::StackId stack) const {
    std::string text;
    const std::vector<recording::LocationId> frames = frames_of(request_.stacks, stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += (text.empty() ? "" : ";") + frame_name(request_.locations(), *frame);
    return "," + csv_cell(std::move(text));
  }

  const ExportRequest& request_;
  Output& output_;
  std::vector<std::string> names_;
};

}  // namespace

void write_csv(const ExportRequest& request, Output& output) { Table{request, output}.write(); }

}  // namespace oomrec::tools::views
