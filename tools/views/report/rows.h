// The rows of a report: holders, separated by everything that the page can select by.
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
  std::uint8_t device = 0;  // 0: none, or unknown; else 1 + its index in devices_of()
  std::uint16_t process = 0;
  double oldest_ms = -1;             // age of the oldest block at the recording's end; -1: unknown
  recording::HolderFigures figures;  // node, api and entry are those of the row's first holder
};

class ReportRows {
 public:
  // `recording`: the report's main one. `process`: its index in the report's processes. `job`: the
  // ranks.json of a job, else null; a row's process is then the index of its rank there.
  ReportRows(const recording::Recording& recording, NamedStacks& stacks, std::uint16_t process,
             const Json& job);

  // Adds another process. Its devices are matched by name to those of the main recording.
  void add_process(const recording::Recording& recording, NamedStacks& stacks,
                   std::uint16_t process);

  // The row of an entry in the main recording's `holders`; of a holder on several devices, the row
  // with its peak. nullopt for a holder that never held anything.
  std::optional<std::uint32_t> row_of(std::uint32_t holder) const;

  void add_to(Container& container) const;

 private:
  // row_of[holder]: 1 + its row.
  void add(const recording::Recording& recording, NamedStacks& stacks, std::uint16_t process,
           std::vector<std::uint32_t>& row_of);

  std::uint16_t process_of(const NamedStack& stack, std::uint16_t otherwise) const;

  std::unordered_map<std::uint32_t, std::uint16_t> indices_;  // in ranks.json, by rank
  std::vector<std::string> devices_;                          // labels
  std::vector<ReportRow> rows_;
  std::vector<std::uint32_t> row_of_;  // by holder: 1 + its row; 0: none
};

}  // namespace oomrec::tools::views
