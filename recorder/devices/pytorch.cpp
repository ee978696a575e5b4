#include "recorder/devices/pytorch.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <string_view>

#include "common/system/memory.h"
#include "recorder/live/block_hash.h"
#include "recorder/session/writer.h"

namespace oomrec::recorder {

namespace {

using session::DeviceBlock;
using session::DeviceKey;
using session::DeviceKind;
using session::TableId;
using session::View;

// Addresses [start, end).
struct Range {
  std::uint64_t start;
  std::uint64_t end;
};
bool earlier(const Range& a, const Range& b) noexcept { return a.start < b.start; }

// An array of ranges in its own mapping: segments first, then the blocks in them.
class Ranges {
 public:
  Ranges() noexcept : first_(static_cast<Range*>(system::map_private(kBytes))) {}
  ~Ranges() {
    if (first_ != nullptr) system::unmap(first_, kBytes);
  }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void add(const Range& range) noexcept {
    if (first_ == nullptr || count_ == kMostPieces)
      complete_ = false;
    else
      first_[count_++] = range;
  }
  // The ranges from `from` on.
  std::span<Range> since(std::uint32_t from) noexcept { return {first_ + from, count_ - from}; }
  std::uint32_t count() const noexcept { return count_; }
  void cut(std::uint32_t count) noexcept { count_ = count; }
  bool complete() const noexcept { return complete_; }

 private:
  static constexpr std::size_t kBytes = kMostPieces * sizeof(Range);
  Range* const first_;
  std::uint32_t count_ = 0;
  bool complete_ = true;
};

// Heap sort: std::sort recurses, and a signal stack is small.
void sort(std::span<Range> ranges) noexcept {
  std::make_heap(ranges.begin(), ranges.end(), earlier);
  std::sort_heap(ranges.begin(), ranges.end(), earlier);
}

// The driver's blocks with this name on the device.
void add_blocks(const View& view, std::uint32_t device, DeviceKey what, Ranges& ranges) noexcept {
  const std::uint64_t count = view.count(TableId::device_blocks);
  for (std::uint64_t i = 1; i < count; ++i) {
    DeviceBlock block;
    if (!view.read(TableId::device_blocks, i, block) || block.key == 0 || block.device != device ||
        block.what != static_cast<std::uint8_t>(what) || block.key + block.bytes < block.key)
      continue;
    ranges.add({block.key, block.key + block.bytes});
  }
}

// Adjacent mappings are one segment, which grew.
void add_mappings(const View& view, std::uint32_t device, Ranges& ranges) noexcept {
  const std::uint32_t from = ranges.count();
  add_blocks(view, device, DeviceKey::mapping, ranges);
  const std::span<Range> mappings = ranges.since(from);
  if (mappings.empty()) return;
  sort(mappings);
  std::size_t last = 0;
  for (const Range& mapping : mappings.subspan(1)) {
    if (mapping.start == mappings[last].end)
      mappings[last].end = mapping.end;
    else
      mappings[++last] = mapping;
  }
  ranges.cut(from + static_cast<std::uint32_t>(last) + 1);
}

// PyTorch's blocks in the segments, which are sorted.
void add_torch_blocks(const View& view, std::span<const Range> segments, Ranges& ranges) noexcept {
  const std::uint64_t count = view.count(TableId::live_blocks);
  for (std::uint64_t i = 1; i < count; ++i) {
    session::LiveBlock block;
    session::Holder holder;
    if (!view.read(TableId::live_blocks, i, block) || block.address == 0) continue;
    if (live::address_of(block.address) == block.address) continue;  // the heap's
    const std::uint64_t start = live::address_of(block.address);
    const auto after = std::upper_bound(segments.begin(), segments.end(), Range{start, 0}, earlier);
    if (after == segments.begin() || start >= after[-1].end) continue;
    if (!view.read(TableId::holders, block.holder, holder) ||
        holder.space != static_cast<std::uint8_t>(Space::torch))
      continue;
    ranges.add({start, std::min(start + block.bytes, after[-1].end)});
  }
}

// Both are sorted. A segment without a block is not PyTorch's, or cannot be recognized as such.
std::uint64_t largest_gap(std::span<const Range> segments, std::span<const Range> blocks) noexcept {
  std::uint64_t largest = 0;
  auto block = blocks.begin();
  for (const Range& segment : segments) {
    std::uint64_t free_from = segment.start;
    bool used = false;
    for (; block != blocks.end() && block->start < segment.end; ++block) {
      used = true;
      if (block->start > free_from) largest = std::max(largest, block->start - free_from);
      free_from = std::max(free_from, block->end);
    }
    if (used && segment.end > free_from) largest = std::max(largest, segment.end - free_from);
  }
  return largest;
}

}  // namespace

std::uint64_t largest_torch_piece(const View& view, std::uint32_t device) noexcept {
  Ranges ranges;
  add_blocks(view, device, DeviceKey::address, ranges);
  add_mappings(view, device, ranges);
  const std::span<Range> segments = ranges.since(0);
  sort(segments);
  add_torch_blocks(view, segments, ranges);
  const std::span<Range> blocks = ranges.since(static_cast<std::uint32_t>(segments.size()));
  sort(blocks);
  return ranges.complete() ? largest_gap(segments, blocks) : session::kUnlimited;
}

using session::FrameKind;
using session::g_session;
using session::TableId;

namespace {

constinit std::atomic<bool> g_met{false};

// libc10_cuda.so, libc10_hip.so: the allocators of GPUs.
bool is_allocator(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == path.npos ? 0 : slash + 1).starts_with("libc10_");
}

}  // namespace

void set_torch_present() noexcept { g_met.store(true, std::memory_order_relaxed); }

bool is_of_torch(std::uint32_t node) noexcept {
  if (!g_met.load(std::memory_order_relaxed)) return false;
  const session::View view = g_session.view();
  bool found = false;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    session::Module module;
    found = found || (session::kind_of(frame) == FrameKind::native &&
                      view.read(TableId::modules, session::module_of(frame), module) &&
                      is_allocator(view.string(module.path)));
  });
  return found;
}

}  // namespace oomrec::recorder
