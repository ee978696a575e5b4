// Folded stacks, as flamegraph.pl and its relatives read them: "outermost;…;innermost weight".
#include <fmt/format.h>

#include <algorithm>

#include "tools/views/export/format.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {

void write_folded(const ExportRequest& request, Output& output) {
  // Names by location, each made once. A semicolon separates frames, so names must not contain one.
  std::vector<std::string> names;
  const auto name = [&](recording::LocationId id) -> const std::string& {
    if (id >= names.size()) names.resize(request.locations().size());
    if (names[id].empty()) {
      names[id] = frame_name(request.locations(), id);
      std::ranges::replace(names[id], ';', ':');
    }
    return names[id];
  };
  for (const HolderRow& row : holder_rows(request.recording(), request.stacks, request.selection)) {
    const Amount& amount = row.at(request.at);
    const std::uint64_t weight = request.count_blocks ? amount.count : amount.bytes;
    if (weight == 0) continue;
    std::string line;
    const std::vector<recording::LocationId> frames = frames_of(request.stacks, row.stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      line += (line.empty() ? "" : ";") + name(*frame);
    output.write(fmt::format("{} {}\n", line, weight));
  }
}

}  // namespace oomrec::tools::views
