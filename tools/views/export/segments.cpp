#include "tools/views/export/segments.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace oomrec::tools::views {
namespace {

using session::DeviceBlock;
using session::DeviceKey;
using session::DeviceKind;
using session::TableId;

// Heap blocks at most this far apart share a segment.
constexpr std::uint64_t kNearBytes = 64 * 1024;
// A larger number in a recording is forged.
constexpr int kMostDevices = 1024;

void sort_by_address(std::vector<SegmentBlock>& blocks) {
  std::ranges::stable_sort(blocks, {}, &SegmentBlock::address);
}

std::uint64_t end_of(const SegmentBlock& block) {
  const std::uint64_t end = block.address + block.bytes;
  return end < block.address ? ~std::uint64_t{0} : end;
}

class Segments {
 public:
  explicit Segments(const recording::Recording& recording)
      : recording_(recording), view_(recording.view()), host_(host_index(recording)) {}

  std::vector<Segment> all() {
    read_live_blocks();
    add_device_segments();
    add_heap_segments();
    add_ranges();
    std::ranges::stable_sort(segments_, [](const Segment& a, const Segment& b) {
      return a.device != b.device ? a.device < b.device : a.address < b.address;
    });
    return std::move(segments_);
  }

 private:
  std::uint32_t node_of(std::uint32_t holder) const {
    session::Holder row{};
    return view_.read(TableId::holders, holder, row) ? row.node : 0;
  }
  Api api_of(std::uint32_t holder) const {
    session::Holder row{};
    return view_.read(TableId::holders, holder, row) ? static_cast<Api>(row.api) : Api::none;
  }
  Space space_of(std::uint32_t holder) const {
    session::Holder row{};
    view_.read(TableId::holders, holder, row);
    return static_cast<Space>(row.space);
  }

  void read_live_blocks() {
    for (const auto& block : session::entries<session::LiveBlock>(view_, TableId::live_blocks)) {
      if (block.address == 0) continue;
      const Space space = space_of(block.holder);
      const std::uint32_t node = node_of(block.holder);
      if (space == Space::torch) {  // the table has torch's addresses plus one
        torch_.push_back({block.address - 1, block.bytes, node, true});
      } else if (space == Space::heap) {
        heap_.push_back({block.address, block.bytes, node, true});
      }
    }
    for (std::uint64_t page = 1; page < view_.count(TableId::side_pages); ++page) {
      view_.for_each_small_block(page, [&](const session::SmallBlock& small) {
        heap_.push_back({small.address, small.bytes, small.node, true});
      });
    }
    sort_by_address(torch_);
    sort_by_address(heap_);
  }

  void add_device_segments() {
    std::unordered_map<std::uint64_t, std::uint64_t> mapped_at;  // by handle
    for_each_device_block([&](const DeviceBlock& block) {
      if (block.what == static_cast<std::uint8_t>(DeviceKey::mapping))
        mapped_at.try_emplace(block.owner, block.key);
    });
    for_each_device_block([&](const DeviceBlock& block) { add_device_segment(block, mapped_at); });
  }

  template <class Visit>
  void for_each_device_block(Visit visit) const {
    for (const auto& block : session::entries<DeviceBlock>(view_, TableId::device_blocks)) {
      const bool live = block.key != 0 && (block.flags & session::kDeviceDormant) == 0;
      if (live) visit(block);
    }
  }

  void add_device_segment(const DeviceBlock& block,
                          const std::unordered_map<std::uint64_t, std::uint64_t>& mapped_at) {
    const auto kind = static_cast<DeviceKind>(block.kind);
    const bool on_device =
        kind == DeviceKind::block || kind == DeviceKind::pooled || kind == DeviceKind::managed;
    if (!on_device && kind != DeviceKind::host) return;
    Segment segment;
    segment.device = on_device ? device_index(recording_, block.device) : host_;
    segment.address = block.key;
    if (block.what == static_cast<std::uint8_t>(DeviceKey::handle)) {
      const auto at = mapped_at.find(block.key);
      if (at != mapped_at.end()) segment.address = at->second;
    }
    segment.bytes = block.bytes;
    segment.node = node_of(block.holder);
    add_tensors(segment);
    if (segment.blocks.empty()) {
      const bool free =
          on_device && is_pytorch_segment(recording_, api_of(block.holder), segment.node);
      segment.blocks.push_back({segment.address, segment.bytes, free ? 0 : segment.node, !free});
    }
    segments_.push_back(std::move(segment));
  }

  // Adds PyTorch's blocks in the segment and the free blocks between them. Adds nothing if PyTorch
  // has none there.
  void add_tensors(Segment& segment) const {
    const std::uint64_t end = end_of({segment.address, segment.bytes, 0, true});
    const auto first =
        std::ranges::lower_bound(torch_, segment.address, {}, &SegmentBlock::address);
    std::uint64_t at = segment.address;
    for (auto block = first; block != torch_.end() && block->address < end; ++block) {
      if (block->address < at) continue;  // forged: inside the previous one
      add_free(segment, at, block->address);
      at = std::min(end_of(*block), end);
      segment.blocks.push_back({block->address, at - block->address, block->node, true});
    }
    if (!segment.blocks.empty()) add_free(segment, at, end);
  }

  static void add_free(Segment& segment, std::uint64_t from, std::uint64_t to) {
    if (from < to) segment.blocks.push_back({from, to - from, 0, false});
  }

  void add_heap_segments() {
    std::uint64_t end = 0;
    for (const SegmentBlock& block : heap_) {
      if (block.address < end) continue;  // forged
      const bool is_near = end != 0 && block.address - end <= kNearBytes;
      if (!is_near) segments_.push_back({host_, block.address, 0, block.node, {}});
      Segment& segment = segments_.back();
      if (is_near) add_free(segment, end, block.address);
      segment.blocks.push_back(block);
      end = end_of(block);
      segment.bytes = end - segment.address;
    }
  }

  void add_range(const session::LiveRange& range, std::uint64_t bytes) {
    const std::uint32_t node = node_of(range.holder);
    segments_.push_back({host_, range.start, bytes, node, {{range.start, bytes, node, true}}});
  }

  template <class Visit>
  void for_each_range(Visit visit) const {
    for (const auto& range : session::entries<session::LiveRange>(view_, TableId::live_ranges))
      if (range.start != 0)
        visit(range, range.kind == static_cast<std::uint32_t>(session::RangeKind::counted));
  }

  // Of reservations, shared memory and files only what is touched, as from their start: a look
  // knows how much it is, of the holder.
  void add_ranges() {
    std::unordered_map<std::uint32_t, std::uint64_t> touched;  // by holder
    for (const recording::HolderFigures& holder : recording_.holders())
      if (holder.space == Space::map) touched[holder.entry] = holder.weight_bytes();
    for_each_range([&](const session::LiveRange& range, bool is_counted) {
      if (!is_counted) return;
      add_range(range, range.bytes);
      touched[range.holder] -= std::min(touched[range.holder], range.bytes);
    });
    for_each_range([&](const session::LiveRange& range, bool is_counted) {
      if (is_counted || range.holder == 0) return;
      const std::uint64_t bytes = std::min(touched[range.holder], range.bytes);
      touched[range.holder] -= bytes;
      if (bytes != 0) add_range(range, bytes);
    });
  }

  const recording::Recording& recording_;
  const session::View& view_;
  const std::size_t host_;
  std::vector<SegmentBlock> torch_, heap_;
  std::vector<Segment> segments_;
};

}  // namespace

std::size_t device_index(const recording::Recording& recording, std::uint32_t entry) {
  session::Device device{};
  const bool valid = entry != 0 && recording.view().read(TableId::devices, entry, device) &&
                     device.ordinal >= 0 && device.ordinal < kMostDevices;
  return valid ? static_cast<std::size_t>(device.ordinal) : 0;
}

std::size_t host_index(const recording::Recording& recording) {
  std::size_t devices = 0;
  const std::uint64_t count = recording.view().count(TableId::devices);
  for (std::uint32_t entry = 1; entry < count; ++entry)
    devices = std::max(devices, device_index(recording, entry) + 1);
  return devices;
}

bool is_pytorch_segment(const recording::Recording& recording, Api api, std::uint32_t node) {
  if (api == Api::reportMemoryUsageToProfiler) return true;
  // The first frame that is not the driver's or the runtime's.
  bool torch = false;
  bool decided = false;
  recording.view().walk(node, [&](std::uint64_t frame) {
    if (decided || session::kind_of(frame) != session::FrameKind::native) return;
    session::Module module{};
    recording.view().read(TableId::modules, session::module_of(frame), module);
    const std::string_view path = recording.view().string(module.path);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libcuda") || name.starts_with("libamdhip")) return;
    decided = true;
    torch = name.starts_with("libc10");
  });
  return torch;
}

std::vector<Segment> segments_of(const recording::Recording& recording) {
  return Segments{recording}.all();
}

}  // namespace oomrec::tools::views
