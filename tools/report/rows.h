// The rows of a report: who holds memory, told apart by all that its page can choose by.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/analysis/recording.h"
#include "tools/report/container.h"
#include "tools/report/named_stacks.h"

namespace oomrec::tools {

struct ReportRow {
  NamedStack stack;
  Space space = Space::heap;
  std::uint8_t device = 0;  // 0: none, or not known; else 1 + its place among devices_of()
  std::uint16_t process = 0;
  HolderFigures figures;  // node, api and entry are those of the first of its holders
};

class ReportRows {
 public:
  // `process`: number of the recorded one among the report's processes.
  ReportRows(const Recording& recording, NamedStacks& stacks, std::uint16_t process);

  const std::vector<ReportRow>& rows() const { return rows_; }

  // The row of an entry in `holders`, the one with its peak where it holds on several devices;
  // nothing for one that never held anything.
  std::optional<std::uint32_t> row_of(std::uint32_t holder) const;

  // `end_ns`: of the recording, by its clock.
  void add_to(Container& container, std::uint64_t end_ns) const;

 private:
  std::vector<ReportRow> rows_;
  std::vector<std::uint32_t> row_of_;  // by holder: 1 + its row; 0: none
};

}  // namespace oomrec::tools
