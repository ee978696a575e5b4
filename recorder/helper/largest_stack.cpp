#include "recorder/helper/largest_stack.h"

#include <algorithm>
#include <bit>

#include "common/bundle/files.h"
#include "common/session/recursion.h"
#include "common/text/device_text.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"

namespace oomrec::helper {

using session::TableId;
using session::View;

namespace {

// What may be added up: a stack's memory on the host, whatever the space.
bool is_same_kind(std::uint8_t a, std::uint8_t b) noexcept {
  return a == b || (is_on_host(static_cast<Space>(a)) && is_on_host(static_cast<Space>(b)));
}

StackSum sum_of(const View& view, const session::Holder& holder, std::uint64_t key,
                std::uint64_t bytes, std::uint64_t blocks) noexcept {
  return {{},
          key,
          bytes,
          blocks,
          holder.space,
          (holder.flags & session::kHolderEstimated) != 0,
          session::is_object_pool(view, holder.node)};
}

// Reduces each candidate to its blocks on this device: a holder may have blocks on several. Cost: a
// pass over all device blocks.
void keep_on_device(const View& view, std::uint32_t device,
                    std::span<bundle::LargestHolder> holders,
                    std::span<std::uint64_t> blocks) noexcept {
  for (bundle::LargestHolder& candidate : holders) candidate.live_bytes = 0;
  session::DeviceBlock block{};
  const std::uint64_t count = view.count(session::TableId::device_blocks);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(session::TableId::device_blocks, i, block) || block.key == 0 ||
        block.device != device || (block.flags & session::kDeviceDormant) != 0)
      continue;
    const auto found = std::find_if(holders.begin(), holders.end(), [&](const auto& candidate) {
      return candidate.holder == block.holder;
    });
    if (found == holders.end()) continue;
    found->live_bytes += block.bytes;
    ++blocks[static_cast<std::size_t>(found - holders.begin())];
  }
}

// Adds the holders that are not among the candidates, which are in order of their numbers.
void add_smaller(const View& view, Largest& memory,
                 std::span<const bundle::LargestHolder> candidates, const ComparedSpaces& wanted,
                 const residency::Rows* rows) noexcept {
  const auto is_before = [](const bundle::LargestHolder& candidate, std::uint64_t holder) {
    return candidate.holder < holder;
  };
  session::Holder holder{};
  std::uint64_t frames = 0;
  const std::uint64_t count = view.count(TableId::holders);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(TableId::holders, i, holder) || !wanted(static_cast<Space>(holder.space)))
      continue;
    // A racing free may become visible before its allocation: the figures are briefly negative.
    const auto live = static_cast<std::int64_t>(holder.live_bytes.load(std::memory_order_relaxed));
    const auto blocks =
        static_cast<std::int64_t>(holder.live_count.load(std::memory_order_relaxed));
    const auto at = std::lower_bound(candidates.begin(), candidates.end(), i, is_before);
    if (live <= 0 || blocks < 0 || (at != candidates.end() && at->holder == i)) continue;
    bool runs_code = false;
    view.walk(holder.node, [&](std::uint64_t frame) {
      ++frames;
      runs_code = runs_code || session::has_code(frame);
    });
    memory.is_partial = frames > kMostFrames;
    if (memory.is_partial) return;
    auto bytes = static_cast<std::uint64_t>(live);
    if (rows != nullptr) bytes = rows->resident(static_cast<std::uint32_t>(i), holder);
    memory.sums.add(sum_of(view, holder, memory.key.of(view, holder.node, runs_code), bytes,
                           static_cast<std::uint64_t>(blocks)),
                    [&] { return key_frames(view, holder.node); });
  }
}

}  // namespace

void StackSums::clear() noexcept {
  count_ = 0;
  std::fill_n(slots_, kSlots, std::uint16_t{0});
}

template <class Frames>
void StackSums::add(StackSum one, Frames&& frames) noexcept {
  for (std::uint64_t at = one.key;; ++at) {
    std::uint16_t& slot = slots_[at % kSlots];
    if (slot == 0) {
      if (count_ == kMost) return;
      one.frames = frames();
      sums_[count_++] = one;
      slot = static_cast<std::uint16_t>(count_);
      return;
    }
    StackSum& sum = sums_[slot - 1];
    if (sum.key != one.key || !is_same_kind(sum.space, one.space)) continue;
    sum.bytes += one.bytes;
    sum.blocks += one.blocks;
    sum.estimated = sum.estimated || one.estimated;
    return;
  }
}

const StackSum* StackSums::largest() const noexcept {
  const StackSum* const end = sums_ + count_;
  const StackSum* const found = std::max_element(
      sums_, end, [](const StackSum& a, const StackSum& b) { return a.bytes < b.bytes; });
  return found != end ? found : nullptr;
}

ComparedSpaces::ComparedSpaces(const View& view, const bundle::Cause& cause,
                               const verdict::Verdict& verdict) noexcept {
  const bundle::Subject about = bundle::subject_of(view, cause, verdict);
  session::Device device;
  const bool asked = cause.trigger == Trigger::request || cause.trigger == Trigger::exception;
  const bool divided =
      text::read_device(view, about.device, device) && device.torch_reserved_bytes != 0;
  host = asked || is_on_host(about.space);
  torch = !host && divided;
  devices = asked || (!host && !divided);
  on_device = devices && !asked ? about.device : 0;
}

bool ComparedSpaces::operator()(Space space) const noexcept {
  if (is_on_host(space)) return host;
  return space == Space::torch ? torch : devices && !is_address_space(space);
}

const StackSum* largest_stack(const View& view, Largest& memory, const ComparedSpaces& wanted,
                              const residency::Rows* rows) noexcept {
  const bool on_device = wanted.on_device != 0;
  const std::span<bundle::LargestHolder> holders{
      memory.holders, on_device ? Largest::kOnDevice : Largest::kCandidates};
  const std::size_t found = bundle::find_largest(view, holders, wanted, rows);
  if (on_device) {
    std::fill_n(memory.blocks, found, 0);
    keep_on_device(view, wanted.on_device, holders.first(found), memory.blocks);
  }
  memory.is_partial = false;
  memory.sums.clear();
  session::Holder holder{};
  for (std::size_t i = 0; i < found; ++i) {
    if (holders[i].live_bytes == 0 || !view.holder(holders[i].holder, holder)) continue;
    const KeyFrames frames = key_frames(view, holder.node);
    const std::uint64_t blocks =
        on_device ? memory.blocks[i] : holder.live_count.load(std::memory_order_relaxed);
    memory.sums.add(sum_of(view, holder, memory.key.of(view, holder.node, frames.code != 0),
                           holders[i].live_bytes, blocks),
                    [&] { return frames; });
  }
  if (found == holders.size() && !on_device) {
    std::sort(holders.begin(), holders.end(),
              [](const auto& a, const auto& b) { return a.holder < b.holder; });
    add_smaller(view, memory, holders, wanted, rows);
  }
  return memory.sums.largest();
}

using session::FrameKind;
using session::TableId;
using session::View;

namespace {

bool is_own_code(std::string_view module) noexcept {
  return !module.empty() && !text::is_plumbing(module) && !text::is_installed(module) &&
         !text::is_interpreter(module);
}

bool is_programs_own(const View& view, std::uint64_t frame, const session::Code& code) noexcept {
  const std::string_view file = view.string(code.file);
  if (session::kind_of(frame) == FrameKind::python) return text::is_programs_own(file);
  return file.empty() ? text::is_programs_own_method(view.string(code.name))
                      : text::is_programs_own_script(file);
}

}  // namespace

KeyFrames key_frames(const View& view, std::uint32_t node) noexcept {
  KeyFrames found;
  found.node = node;
  view.walk(node, [&](std::uint64_t frame) {
    session::Code code{};
    session::Module module{};
    if (session::has_code(frame)) {
      if (found.code == 0) found.code = frame;
      if (found.own_code == 0 && view.read(TableId::codes, session::code_of(frame), code) &&
          is_programs_own(view, frame, code))
        found.own_code = frame;
    } else if (session::kind_of(frame) == FrameKind::native && found.own_native == 0 &&
               view.read(TableId::modules, session::module_of(frame), module)) {
      const std::string_view path = view.string(module.path);
      if (text::is_plumbing(path)) return;
      if (found.native == 0) found.native = frame;
      if (!text::is_installed(path) && !text::is_interpreter(path)) found.own_native = frame;
    }
  });
  return found;
}

void StackKey::add(std::uint64_t function, std::uint64_t place) noexcept {
  if (count_ == session::kMaxFrames) return;
  functions_[count_] = function;
  places_[count_++] = place;
  // Outwards, so the frames that are left out are the last, which are the outer ones.
  count_ -= session::last_cycle([&](unsigned outer, unsigned inner) {
    return inner < count_ && functions_[count_ - 1 - outer] == functions_[count_ - 1 - inner];
  });
}

std::uint64_t StackKey::of(const View& view, std::uint32_t node, bool runs_code) noexcept {
  count_ = 0;
  view.walk(node, [&](std::uint64_t frame) {
    session::Code code{};
    session::Module module{};
    switch (session::kind_of(frame)) {
      case FrameKind::python:
        if (view.read(TableId::codes, session::code_of(frame), code) &&
            !text::is_import_machinery(view.string(code.file)))
          add(session::python_frame(session::code_of(frame), 0), text::line_of(view, code, frame));
        return;
      case FrameKind::script:
        add(session::script_frame(session::code_of(frame), 0), session::script_line_of(frame));
        return;
      case FrameKind::native:
        if (!runs_code || (view.read(TableId::modules, session::module_of(frame), module) &&
                           is_own_code(view.string(module.path))))
          add(frame, 0);
        return;
      case FrameKind::special:
        if (session::special_of(frame) != session::SpecialFrame::thread_group) add(frame, 0);
    }
  });
  std::uint64_t hash = count_;
  for (std::uint32_t at = 0; at < count_; ++at)
    hash = (std::rotl(hash, 29) ^ (functions_[at] * 0x9e3779b97f4a7c15u + places_[at])) *
           0xd6e8feb86659fd93u;
  return hash;
}

}  // namespace oomrec::helper
