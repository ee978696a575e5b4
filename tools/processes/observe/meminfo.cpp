#include "tools/processes/observe/meminfo.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "common/system/files.h"

namespace oomrec::tools::processes {

Meminfo read_meminfo() {
  Meminfo memory;
  const struct {
    std::string_view name;
    std::uint64_t& bytes;
  } rows[] = {{"MemTotal:", memory.total_bytes},
              {"MemAvailable:", memory.available_bytes},
              {"SwapTotal:", memory.swap_total_bytes},
              {"SwapFree:", memory.swap_free_bytes}};
  std::ifstream file{fmt::format("{}/meminfo", system::g_roots.proc)};
  std::string name;
  for (std::uint64_t kib = 0; file >> name >> kib;) {
    for (const auto& row : rows)
      if (row.name == name) row.bytes = kib << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return memory;
}

}  // namespace oomrec::tools::processes
