#include "tools/bundles/signature/holders.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/text/frames.h"
#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/labels.h"
#include "tools/bundles/store/verdict_json.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::bundles {
namespace {

using recording::At;
using recording::Location;
using recording::StackFigures;

constexpr std::size_t kMostStacks = 256;  // that are looked at; smaller ones are part of the rest
constexpr std::uint64_t kSmall = 200;     // a holder with less than this part of the whole
constexpr std::uint64_t kMinor = 20;      // likewise; it has fewer frames
constexpr std::size_t kMinorFrames = 8;
constexpr std::size_t kNameColumns = 120;
constexpr std::size_t kFileColumns = 80;

// "/home/me/src/train/loader.py" → "train/loader.py".
std::string_view last_components(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == path.npos || last == 0) return path;
  const std::size_t before = path.rfind('/', last - 1);
  return before == path.npos ? path : path.substr(before + 1);
}

Frame frame_of(const Location& location, const recording::Locations& locations, bool own) {
  const auto name = [](std::string_view text, std::size_t columns) {
    return clip(printable(text), columns);
  };
  Frame frame;
  frame.python = location.kind == Location::Kind::python;
  frame.script = location.is_line();
  frame.own = own && location.kind != Location::Kind::note;
  frame.line = location.line;
  frame.function = recording::shortened_name(printable(location.function), kNameColumns);
  frame.file = clip_start(printable(last_components(location.file)), kFileColumns);
  frame.module = name(text::base_name(locations.module_path(location)), kFileColumns);
  if (location.function.empty()) {
    frame.offset = location.offset;
    frame.build_id = locations.build_id(location);
  }
  return frame;
}

// Of inlined functions debug information has the name without its scope, so the header tells them.
bool is_of_standard_library(const Location& location) {
  constexpr std::array<std::string_view, 3> kHeaders = {"/include/c++/", "/rustc/",
                                                        "/rust/library/"};
  return recording::is_library_function(location) ||
         (location.kind == Location::Kind::native &&
          std::any_of(kHeaders.begin(), kHeaders.end(), [&](std::string_view header) {
            return location.file.find(header) != std::string::npos;
          }));
}

// The interpreter's frames, and what every stack has: allocators, the C and C++ libraries, the
// loader. A library's function without a name stays, for it may get one later.
bool is_left_out(const Location& location, const recording::Locations& locations,
                 recording::Interest interest) {
  if (location.interpreter || is_of_standard_library(location)) return true;
  const bool is_unnamed = location.function.empty() && location.module != 0 &&
                          !text::is_plumbing(locations.module_path(location));
  return interest == recording::Interest::machinery && !is_unnamed;
}

bool is_counted(Space space, std::uint32_t device) {
  return is_additive(space) && (device != 0 || is_on_host(space));
}

std::vector<StackFigures> figures_of(const Source& source, recording::Stacks& stacks, At at) {
  const std::uint32_t device = subject_device(source);
  std::vector<StackFigures> rows = recording::merged(
      device != 0 ? recording::holders_on(*source.recording, device) : source.recording->holders(),
      stacks, at, recording::Recursion::collapsed);
  std::erase_if(rows, [&](const StackFigures& row) { return !is_counted(row.space, device); });
  return rows;
}

bool is_small(const Holder& holder, std::uint64_t whole) {
  return holder.weight() < whole / kSmall;
}

// A sum that is still empty has no space of its own.
void add(Holder& sum, const Holder& holder) {
  if (sum.count == 0 && sum.bytes == 0) {
    sum.space = holder.space;
    sum.device = holder.device;
  }
  sum.bytes += holder.bytes;
  if (holder.resident_bytes) sum.resident_bytes = sum.resident_bytes.value_or(0) + holder.weight();
  sum.count += holder.count;
  sum.estimated = sum.estimated || holder.estimated;
}

}  // namespace

std::uint32_t subject_device(const Source& source) {
  session::Failure failure{};
  if (source.failure() != 0 &&
      source.recording->view().read(session::TableId::failures, source.failure(), failure) &&
      !is_on_host(static_cast<Space>(failure.space)))
    return failure.device.device;
  return source.trigger() == Trigger::near_limit ? source.recording->header().near_device.load()
                                                 : 0;
}

std::vector<Frame> frames_of(const Source& source,
                             const std::vector<recording::LocationId>& stack) {
  const recording::Locations& locations = *source.locations;
  const std::vector<recording::Interest> interests = recording::interests(stack, locations);
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const Location& location = locations[stack[i]];
    if (location.label || is_left_out(location, locations, interests[i])) continue;
    frames.push_back(frame_of(location, locations,
                              interests[i] == recording::Interest::own_line ||
                                  interests[i] == recording::Interest::own_function));
  }
  return selected(frames, kMostFrames);
}

std::vector<Frame> selected(const std::vector<Frame>& frames, std::size_t most) {
  if (frames.size() <= most) return frames;
  std::vector<bool> keep(frames.size());
  std::size_t left = most;
  for (const std::size_t i : path_of(frames)) {
    if (left == 0) break;
    keep[i] = true;
    --left;
  }
  for (std::size_t i = 0; i < frames.size() && left != 0; ++i) {
    if (keep[i]) continue;
    keep[i] = true;
    --left;
  }
  std::vector<Frame> kept;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (keep[i]) kept.push_back(frames[i]);
  return kept;
}

std::vector<Holder> holders_of(const Source& source) {
  const recording::Recording& recording = *source.recording;
  const At at = source.has_freed_most() ? At::peak : At::end;
  const bool weighs_resident = at == At::end && recording.weight() == recording::Weight::resident &&
                               subject_device(source) == 0;
  const std::string device = recording::device_label(recording, subject_device(source));
  recording::Stacks stacks{recording, *source.locations};
  const std::vector<StackFigures> rows = figures_of(source, stacks, at);
  std::uint64_t whole = 0;
  for (const StackFigures& row : rows) whole += row.bytes;

  // Small stacks with a path in common are one holder, which may be a large one.
  std::vector<Holder> holders;
  std::map<std::string, std::size_t, std::less<>> of_path;  // the first holder with it
  Holder rest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StackFigures& row = rows[i];
    Holder holder{row.space, device, row.bytes, std::nullopt, row.count, row.estimated, {}};
    if (weighs_resident) {
      holder.bytes = row.live_bytes;
      holder.resident_bytes = row.bytes;
    }
    if (i < kMostStacks) holder.frames = frames_of(source, stacks.locations(row.stack));
    if (holder.weight() < whole / kMinor) holder.frames = selected(holder.frames, kMinorFrames);
    const std::string key = path_key(holder.frames);
    if (const auto same = of_path.find(key); same != of_path.end() && is_small(holder, whole)) {
      add(holders[same->second], holder);
    } else if (key.empty() && is_small(holder, whole)) {
      add(rest, holder);
    } else {
      if (!key.empty()) of_path.try_emplace(key, holders.size());
      holders.push_back(std::move(holder));
    }
  }
  std::erase_if(holders, [&](const Holder& holder) {
    const bool is_rest = is_small(holder, whole);
    if (is_rest) add(rest, holder);
    return is_rest;
  });
  if (rest.bytes != 0) holders.push_back(std::move(rest));
  return with_rest(std::move(holders), kMostHolders);
}

std::vector<Holder> with_rest(std::vector<Holder> holders, std::size_t most) {
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return a.frames.empty() != b.frames.empty() ? b.frames.empty() : a.weight() > b.weight();
  });
  while (holders.size() > std::max<std::size_t>(most, 1)) {
    Holder last = std::move(holders.back());
    holders.pop_back();
    add(holders.back(), last);
    if (holders.size() == most) holders.back().frames.clear();
  }
  return holders;
}

std::optional<Request> request_of(const Source& source) {
  const FailureDetails details{source};
  if (!details.exists) return std::nullopt;
  const verdict::Verdict verdict = source.verdict();
  const bool has_limit = verdict.limit != LimitKind::none && !is_count_limit(verdict.limit);
  return Request{details.failure.bytes, has_limit ? verdict.limit_bytes : 0,
                 frames_of(source, source.locations->of_stack(details.failure.node))};
}

Signature signature_of(const Source& source) {
  return signature_of(holders_of(source), request_of(source), Labels{source}.column("service"));
}

}  // namespace oomrec::tools::bundles
