// The rows of a report: who holds memory, told apart by all that its page can choose by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"
#include "tools/views/report/container.h"
#include "tools/views/report/named_stacks.h"

namespace oomrec::tools::views {

struct ReportRow {
  NamedStack stack;
  Space space = Space::heap;
  std::uint8_t device = 0;  // 0: none, or not known; else 1 + its place among devices_of()
  std::uint16_t process = 0;
  double oldest_ms = -1;  // age of the oldest block at the recording's end; -1: not known
  recording::HolderFigures figures;  // node, api and entry are those of the first of its holders
};

class ReportRows {
 public:
  // `recording`: the report's own. `process`: its number among the report's processes. `job`: where
  // it is of many ranks (ranks.json); a row's process is then its rank's place there.
  ReportRows(const recording::Recording& recording, NamedStacks& stacks, std::uint16_t process,
             const Json& job);

  // Those of another process; devices are the own recording's, by their names.
  void add_process(const recording::Recording& recording, NamedStacks& stacks,
                   std::uint16_t process);

  // The row of an entry in the own recording's `holders`, the one with its peak where it holds on
  // several devices; nothing for one that never held anything.
  std::optional<std::uint32_t> row_of(std::uint32_t holder) const;

  void add_to(Container& container) const;

 private:
  // row_of[holder]: 1 + its row.
  void add(const recording::Recording& recording, NamedStacks& stacks, std::uint16_t process,
           std::vector<std::uint32_t>& row_of);

  std::uint16_t process_of(const NamedStack& stack, std::uint16_t otherwise) const;

  std::unordered_map<std::uint32_t, std::uint16_t> places_;  // of ranks in the job
  std::vector<std::string> devices_;                         // labels
  std::vector<ReportRow> rows_;
  std::vector<std::uint32_t> row_of_;  // by holder: 1 + its row; 0: none
};

}  // namespace oomrec::tools::views
