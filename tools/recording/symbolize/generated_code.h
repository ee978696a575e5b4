// Names of a process' code that was made at run time, while its map for perf is there
// (common/names/perf_map.h): of a running process, and of a session that is in no bundle. Bundles
// have the names in symbols.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::recording {

class GeneratedCode {
 public:
  // Where the process' map is; nowhere if it cannot be known.
  explicit GeneratedCode(const Recording&);

  // One line, or none. Cost: reads what was added to the map since the last call that found
  // nothing.
  std::vector<LineInfo> find(std::uint64_t address);

  bool has_names() const { return !by_start_.empty(); }  // as far as it was read

 private:
  struct Code {
    std::uint64_t end;
    std::string name;
  };
  void read_on();
  const Code* code_at(std::uint64_t address) const;

  std::string root_;  // of the process: "", or "/proc/PID/root"
  int pid_ = 0;       // in its namespace; 0: unknown
  std::uint64_t since_ns_;
  std::uint64_t read_bytes_ = 0;
  std::map<std::uint64_t, Code> by_start_;
};

}  // namespace oomrec::tools::recording
