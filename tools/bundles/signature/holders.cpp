#include "tools/bundles/signature/holders.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/text/frames.h"
#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/signature.h"
#include "tools/bundles/store/trigger.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/script.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::bundles {
namespace {

using recording::At;
using recording::Location;
using recording::StackFigures;

constexpr std::size_t kMostStacks = 4096;  // of holders; all others are part of the rest
constexpr std::uint64_t kSmall = 200;      // a holder with less than this part of the whole
constexpr std::uint64_t kMinor = 10;       // likewise; it has fewer frames
constexpr std::size_t kMinorFrames = 8;
constexpr std::size_t kNameColumns = 100;
constexpr std::size_t kFileColumns = 80;

// "/home/me/src/train/loader.py" → "train/loader.py".
std::string_view last_components(std::string_view path) {
  const std::size_t last = path.rfind('/');
  if (last == path.npos || last == 0) return path;
  const std::size_t before = path.rfind('/', last - 1);
  return before == path.npos ? path : path.substr(before + 1);
}

std::shared_ptr<const Frame> described(const Location& location,
                                       const recording::Locations& locations, bool own) {
  const auto name = [](std::string_view text, std::size_t columns) {
    return clip(printable(text), columns);
  };
  const bool is_native = location.kind == Location::Kind::native;
  Frame frame;
  frame.python = location.kind == Location::Kind::python;
  frame.script = location.is_line();
  frame.line = location.line;
  frame.function = name(
      is_native && !frame.script ? recording::plain_name(location.function) : location.function,
      kNameColumns);
  frame.file = clip_start(printable(last_components(location.file)), kFileColumns);
  frame.module = name(text::base_name(locations.module_path(location)), kFileColumns);
  // What an interpreter does for a script is not the program's own.
  frame.own = own && (is_native ? frame.script || !recording::is_script_interpreter(frame.module)
                                : frame.python);
  if (location.function.empty()) {
    frame.offset = location.offset;
    frame.build_id = locations.build_id(location);
  }
  return with_key(std::move(frame));
}

// Of inlined functions debug information has the name without its scope, so the header tells them.
bool is_of_standard_library(const Location& location) {
  constexpr std::array<std::string_view, 3> kHeaders = {"/include/c++/", "/rustc/",
                                                        "/rust/library/"};
  return recording::is_library_function(location) ||
         (location.kind == Location::Kind::native &&
          std::ranges::any_of(kHeaders, [&](std::string_view header) {
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

// The holders that count, without the smallest ones: symbolizing their stacks would cost more than
// that of all others.
struct Counted {
  std::vector<recording::HolderFigures> holders;
  std::uint64_t left_out_bytes = 0, left_out_count = 0, whole = 0;
};
Counted counted_holders(const Source& source, At at) {
  const auto bytes_of = [at](const recording::HolderFigures& holder) {
    return at == At::peak ? holder.peak_bytes : holder.weight_bytes();
  };
  const std::uint32_t device = subject_device(source);
  Counted counted{device != 0 ? recording::holders_on(*source.recording, device)
                              : source.recording->holders()};
  std::vector<recording::HolderFigures>& holders = counted.holders;
  std::erase_if(holders, [&](const auto& holder) { return !is_counted(holder.space, device); });
  for (const recording::HolderFigures& holder : holders) counted.whole += bytes_of(holder);
  // A heap of numbers: most holders are small, and left out.
  std::vector<std::pair<std::uint64_t, std::size_t>> by_size;
  for (std::size_t i = 0; i < holders.size(); ++i) by_size.emplace_back(bytes_of(holders[i]), i);
  const auto is_less = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::make_heap(by_size.begin(), by_size.end(), is_less);
  std::uint64_t left = counted.whole;
  std::vector<recording::HolderFigures> large;
  while (!by_size.empty() && large.size() < kMostStacks && left > counted.whole / kSmall) {
    left -= by_size.front().first;
    large.push_back(holders[by_size.front().second]);
    std::pop_heap(by_size.begin(), by_size.end(), is_less);
    by_size.pop_back();
  }
  for (const auto& [bytes, i] : by_size)
    counted.left_out_count += at == At::peak ? holders[i].peak_count : holders[i].live_count;
  counted.left_out_bytes = left;
  holders = std::move(large);
  return counted;
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

// Takes out those that are small even together with others of the same innermost function. Where
// they are not, their callers are left out: each of these has little of it.
std::vector<Holder> take_small(std::vector<Holder>& holders, std::uint64_t whole) {
  std::vector<Holder> large, sums, small;
  std::map<std::string, std::size_t, std::less<>> of_function;  // in `sums`
  for (Holder& holder : holders) {
    const std::vector<std::size_t> path = path_of(holder.frames);
    if (!is_small(holder, whole)) {
      large.push_back(std::move(holder));
    } else if (path.empty()) {
      small.push_back(std::move(holder));
    } else {
      holder.frames.resize(path[0] + 1);
      const auto [at, is_new] = of_function.try_emplace(path_key(holder.frames), sums.size());
      if (is_new)
        sums.push_back(std::move(holder));
      else
        add(sums[at->second], holder);
    }
  }
  for (Holder& sum : sums) (is_small(sum, whole) ? small : large).push_back(std::move(sum));
  holders = std::move(large);
  return small;
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

const std::shared_ptr<const Frame>& FrameReader::frame_of(recording::LocationId id) {
  if (frames_.size() <= id) frames_.resize(locations_.size());
  Known& known = frames_[id];
  if (known.is_read) return known.frame;
  known.is_read = true;
  const Location& location = locations_[id];
  const recording::Interest interest = recording::interest_alone(location, locations_);
  if (!location.label && !is_left_out(location, locations_, interest))
    known.frame = described(
        location, locations_,
        interest == recording::Interest::own_line || interest == recording::Interest::own_function);
  return known.frame;
}

Frames FrameReader::frames_of(const std::vector<recording::LocationId>& stack) {
  Frames frames;
  for (std::size_t i = recording::allocator_frames(stack, locations_); i < stack.size(); ++i)
    if (const std::shared_ptr<const Frame>& frame = frame_of(stack[i])) frames.push_back(frame);
  return selected(frames, kMostFrames);
}

Frames selected(const Frames& frames, std::size_t most) {
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
  Frames kept;
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
  const Counted counted = counted_holders(source, at);
  const std::uint64_t whole = counted.whole;

  FrameReader reader{*source.locations};
  // Small stacks with a path in common are one holder, which may be a large one.
  std::vector<Holder> holders;
  std::map<std::string, std::size_t, std::less<>> of_path;  // the first holder with it
  Holder rest{Space::heap, device, counted.left_out_bytes, std::nullopt, counted.left_out_count,
              false,       {}};
  if (weighs_resident) rest.resident_bytes = rest.bytes;
  for (const StackFigures& row :
       recording::merged(counted.holders, stacks, at, recording::Recursion::collapsed)) {
    Holder holder{row.space, device, row.bytes, std::nullopt, row.count, row.estimated, {}};
    if (weighs_resident) {
      holder.bytes = row.live_bytes;
      holder.resident_bytes = row.bytes;
    }
    holder.frames = reader.frames_of(stacks.locations(row.stack));
    if (holder.weight() < whole / kMinor) holder.frames = selected(holder.frames, kMinorFrames);
    const std::string key = path_key(holder.frames);
    if (const auto same = of_path.find(key); same != of_path.end() && is_small(holder, whole)) {
      add(holders[same->second], holder);
    } else if (holder.frames.empty()) {
      add(rest, holder);
    } else {
      if (!key.empty()) of_path.try_emplace(key, holders.size());
      holders.push_back(std::move(holder));
    }
  }
  for (Holder& holder : take_small(holders, whole)) add(rest, holder);
  if (rest.bytes != 0) holders.push_back(std::move(rest));
  return with_rest(std::move(holders), kMostHolders);
}

std::vector<Holder> with_rest(std::vector<Holder> holders, std::size_t most) {
  std::ranges::stable_sort(holders, [](const Holder& a, const Holder& b) {
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
  return Request{
      details.failure.bytes, verdict.limit.is_in_bytes() ? verdict.limit.bytes : 0,
      FrameReader{*source.locations}.frames_of(source.locations->of_stack(details.failure.node))};
}

Signature signature_of(const Source& source) {
  return signature_of(holders_of(source), request_of(source), Labels{source}.column("service"));
}

}  // namespace oomrec::tools::bundles
