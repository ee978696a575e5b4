// The kernel's report of an OOM kill: what was full, the memory statistics, and the table of tasks.
//
// One report is some fifty lines of its log. Their layout differs between kernels (2.6.32 to 6.x)
// and between the two versions of cgroups, so every line says by its own words what it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/deaths/memory_statistics.h"

namespace oomrec::tools::deaths {

// Of a process. The parts are 0 if the kernel only logs the sum.
struct ResidentMemory {
  std::uint64_t rss_bytes = 0;  // 0: unknown
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t shared_bytes = 0;
};

struct ReportedProcess : ResidentMemory {
  std::uint64_t pid = 0;     // of the process …
  std::uint64_t thread = 0;  // … and of the thread that stands for it
  std::string name;
};

struct OomReport {
  bool of_machine = false;  // else of a cgroup
  std::uint64_t limit_bytes = 0;
  std::uint64_t usage_bytes = 0;  // 0: unknown
  MemoryStatistics statistics;
  std::vector<ReportedProcess> processes;
  bool is_mixed = false;  // with lines of another report: its sums are wrong

  // The process with that pid or thread; null: none.
  const ReportedProcess* process(std::uint64_t pid) const;
};

// Reads a report line by line.
class OomReportReader {
 public:
  void read(std::string_view text);

  // The report so far. Then starts a new one. The log may be of another machine: the size of its
  // pages is told by the row of the process `pid`, which had `rss_bytes` by the kill's line.
  OomReport take(std::uint64_t pid, std::uint64_t rss_bytes);

 private:
  // Which lines are expected now.
  enum class Section : std::uint8_t { other, statistics, tasks };

  void read_usage(std::string_view text);
  void begin_table(std::string_view text);
  bool read_task(std::string_view text);

  OomReport report_;
  Section section_ = Section::other;
  StatisticsReader statistics_;
  MachineStatisticsReader machine_;
  std::uint64_t kernel_bytes_ = 0;  // in cgroups of version 1, which count it apart
  std::vector<std::string> columns_;
};

}  // namespace oomrec::tools::deaths
