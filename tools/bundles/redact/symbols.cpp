#include "tools/bundles/redact/symbols.h"

#include <algorithm>
#include <vector>

namespace oomrec::tools::bundles {
namespace {

using session::TableId;

constexpr std::size_t kMost = 200'000;  // about the 64 MiB that readers take

// Distinct native frames of all stacks, and of a crash.
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

Json frames_json(const std::vector<recording::PlaceId>& ids, const recording::Places& places,
                 const RedactedWords& words) {
  Json frames = Json::array();
  for (const recording::PlaceId id : ids) {
    const recording::Place& place = places[id];
    frames.push_back({{"function", place.function},
                      {"file", text_or_null(words.path(place.file))},
                      {"line", place.line != 0 ? Json(place.line) : Json(nullptr)},
                      {"inlined", place.inlined}});
  }
  return frames;
}

}  // namespace

Json all_symbols(const recording::Recording& recording, recording::Places& places,
                 const RedactedWords& words) {
  Json symbols = Json::array();
  for (const std::uint64_t frame : native_frames(recording.view())) {
    const std::vector<recording::PlaceId> ids = places.of_frame(frame);
    const recording::Place& outermost = places[ids.back()];
    const std::string build_id = places.build_id(outermost);
    if (outermost.function.empty() || build_id.empty()) continue;  // no name, or none to find it by
    symbols.push_back({{"module", words.path(places.module_path(outermost))},
                       {"build_id", build_id},
                       {"offset", session::offset_of(frame)},
                       {"exact", session::is_exact(frame)},
                       {"frames", frames_json(ids, places, words)}});
  }
  return {{"schema_version", 1}, {"source", "debug_info"}, {"symbols", std::move(symbols)}};
}

}  // namespace oomrec::tools::bundles
