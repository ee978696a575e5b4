// Folded stacks, as flamegraph.pl and its relatives read them: "outermost;…;innermost weight".
#include <fmt/format.h>

#include <algorithm>

#include "tools/views/export/format.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {

void write_folded(const Exported& exported, Output& output) {
  // By place: names are made once. A semicolon would be a frame's end.
  std::vector<std::string> names;
  const auto name = [&](recording::PlaceId id) -> const std::string& {
    if (id >= names.size()) names.resize(exported.places().size());
    if (names[id].empty()) {
      names[id] = frame_name(exported.places(), id);
      std::replace(names[id].begin(), names[id].end(), ';', ':');
    }
    return names[id];
  };
  for (const HolderRow& row :
       holder_rows(exported.recording(), exported.stacks, exported.selection)) {
    const Held& held = row.at(exported.at);
    const std::uint64_t weight = exported.count ? held.count : held.bytes;
    if (weight == 0) continue;
    std::string line;
    const std::vector<recording::PlaceId> frames = frames_of(exported.stacks, row.stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      line += (line.empty() ? "" : ";") + name(*frame);
    output.write(fmt::format("{} {}\n", line, weight));
  }
}

}  // namespace oomrec::tools::views
