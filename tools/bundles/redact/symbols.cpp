#include "tools/bundles/redact/symbols.h"

#include <algorithm>
#include <vector>

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

constexpr std::size_t kMost = 200'000;  // about 64 MiB, the most that readers accept

// The distinct native frames of all stacks and of the crash.
std::vector<std::uint64_t> native_frames(const session::View& view) {
  std::vector<std::uint64_t> frames;
  const auto add = [&](std::uint64_t frame) {
    if (session::kind_of(frame) == session::FrameKind::native && session::module_of(frame) != 0)
      frames.push_back(frame);
  };
  session::Node node{};
  for (std::uint64_t i = 1; i < view.count(TableId::nodes); ++i)
    if (view.read(TableId::nodes, i, node)) add(node.frame);
  const session::Crash& crash = view.header().crash;
  for (std::uint32_t i = 0; i < std::min(crash.frame_count, session::kCrashFrames); ++i)
    add(crash.frames[i]);
  std::sort(frames.begin(), frames.end());
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  if (frames.size() > kMost) frames.resize(kMost);
  return frames;
}

Json frames_json(const std::vector<recording::LocationId>& ids,
                 const recording::Locations& locations, const TextRedactor& redactor) {
  Json frames = Json::array();
  for (const recording::LocationId id : ids) {
    const recording::Location& location = locations[id];
    frames.push_back({{"function", location.function},
                      {"file", text_or_null(redactor.path(location.file))},
                      {"line", location.line != 0 ? Json(location.line) : Json(nullptr)},
                      {"inlined", location.inlined}});
  }
  return frames;
}

}  // namespace

Json all_symbols(const recording::Recording& recording, recording::Locations& locations,
                 const TextRedactor& redactor) {
  Json symbols = Json::array();
  for (const std::uint64_t frame : native_frames(recording.view())) {
    const std::vector<recording::LocationId> ids = locations.of_frame(frame);
    const recording::Location& outermost = locations[ids.back()];
    const std::string build_id = locations.build_id(outermost);
    if (outermost.function.empty() || build_id.empty())
      continue;  // no name, or no key to find it by
    symbols.push_back({{"module", redactor.path(locations.module_path(outermost))},
                       {"build_id", build_id},
                       {"offset", session::offset_of(frame)},
                       {"exact", session::is_exact(frame)},
                       {"frames", frames_json(ids, locations, redactor)}});
  }
  return {{"schema_version", 1}, {"source", "debug_info"}, {"symbols", std::move(symbols)}};
}

}  // namespace oomrec::tools::bundles
