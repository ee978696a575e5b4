#include "tools/formats/pytorch/snapshot.h"

#include <algorithm>
#include <array>
#include <map>

#include "tools/formats/pytorch/stack_nodes.h"
#include "tools/formats/pytorch/trace.h"

namespace oomrec::tools::formats {
namespace {

using session::TableId;

constexpr std::uint64_t kNsPerUs = 1000;
constexpr std::uint32_t kMostDevices = 256;
constexpr std::size_t kMostBlocks = std::size_t{1} << 21;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;  // a larger figure is forged
constexpr std::string_view kFree = "reserved by PyTorch, not allocated";

struct Sum {
  std::uint64_t bytes = 0, count = 0;

  void add(std::uint64_t more) {
    bytes += more;
    ++count;
  }
};

// Sums over the segments of a device.
struct DeviceState {
  bool used = false;
  std::uint64_t reserved = 0, allocated = 0, largest_free = 0;
  std::uint32_t entry = 0;
};

class Import {
 public:
  Import(const Pickle& pickle, std::uint64_t written_ns)
      : pickle_(pickle), stacks_(pickle, image_), written_ns_(written_ns) {}

  ImportedSnapshot run() {
    const Pickle::Value& segments = pickle_.member(pickle_.root(), "segments");
    const Pickle::Value& traces = pickle_.member(pickle_.root(), "device_traces");
    if (!segments.is(Pickle::Kind::list) || !traces.is(Pickle::Kind::list))
      throw PickleError{"it has no segments or no device_traces"};
    trace_ = trace_of(pickle_, pickle_.root());
    for (const TraceEvent& event : trace_) device(event.device).used = true;
    for (const Pickle::Value& segment : pickle_.items(segments)) add_segment(segment);
    add_freed();
    add_header();
    add_devices();
    add_blocks();
    add_holders();
    add_failures();
    add_lane();
    add_points();
    ImportedSnapshot result;
    result.native_names = stacks_.take_native_names();
    result.last_failure = last_failure_;
    result.bytes = image_.finish(result.count);
    return result;
  }

 private:
  struct Block {
    std::uint64_t address, bytes;
    std::uint32_t holder, device;
    bool tensor;
  };
  struct HolderState {
    std::uint32_t node;
    Space space;
    Sum live, freed;
  };

  std::uint64_t figure(const Pickle::Value& dict, std::string_view key) const {
    const std::int64_t number = pickle_.number(pickle_.member(dict, key));
    return static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(number, 0, static_cast<std::int64_t>(kMostBytes)));
  }

  DeviceState& device(std::uint64_t number) {
    if (number >= kMostDevices) throw PickleError{"it has too many devices"};
    if (devices_.size() <= number) devices_.resize(number + 1);
    return devices_[number];
  }

  // The entry of a stack's holder in the image's table, which add_holders() writes later.
  std::uint32_t holder(std::uint32_t node, Space space) {
    const auto [at, is_new] = holder_of_.try_emplace({node, space}, 0);
    if (is_new) {
      holders_.push_back({node, space, {}, {}});
      at->second = static_cast<std::uint32_t>(holders_.size());
    }
    return at->second;
  }
  HolderState& holder_state(std::uint32_t entry) { return holders_[entry - 1]; }

  void add_block(const Block& block) {
    if (blocks_.size() == kMostBlocks) throw PickleError{"it has too many blocks"};
    holder_state(block.holder).live.add(block.bytes);
    live_[index(holder_state(block.holder).space)].add(block.bytes);
    blocks_.push_back(block);
  }
  static std::size_t index(Space space) { return static_cast<std::size_t>(space); }

  // Blocks are adjacent: older snapshots do not have their addresses.
  void add_segment(const Pickle::Value& segment) {
    const auto number = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(figure(segment, "device"), kMostDevices));
    DeviceState& of = device(number);
    of.used = true;
    std::uint64_t address = figure(segment, "address");
    std::uint64_t in_blocks = 0;
    for (const Pickle::Value& block : pickle_.items(pickle_.member(segment, "blocks"))) {
      const std::uint64_t bytes = figure(block, "size");
      add_segment_block(block, address, bytes, number);
      address += bytes;
      in_blocks += bytes;
    }
    const std::uint64_t total = figure(segment, "total_size");
    if (total > in_blocks) add_free(address, total - in_blocks, number);
    of.reserved += std::max(total, in_blocks);
  }

  void add_segment_block(const Pickle::Value& block, std::uint64_t address, std::uint64_t bytes,
                         std::uint32_t number) {
    DeviceState& of = device(number);
    const std::string_view state = pickle_.text(pickle_.member(block, "state"));
    if (state == "inactive") return add_free(address, bytes, number);
    const std::uint32_t node = stacks_.of_frames(pickle_.member(block, "frames"));
    add_block({address, bytes, holder(node, Space::cuda), number, false});
    // A freed block that still waits for a stream no longer belongs to a tensor.
    if (state != "active_allocated") return;
    add_block({address, bytes, holder(node, Space::torch), number, true});
    of.allocated += bytes;
  }

  void add_free(std::uint64_t address, std::uint64_t bytes, std::uint32_t number) {
    add_block({address, bytes, holder(stacks_.of_note(kFree), Space::cuda), number, false});
    DeviceState& of = device(number);
    of.largest_free = std::max(of.largest_free, bytes);
  }

  // Counts the blocks that were allocated and freed within the trace.
  void add_freed() {
    std::map<std::uint64_t, std::uint32_t> live;  // holders by address
    for (const TraceEvent& event : trace_) {
      if (event.kind == EventKind::free) freed_[index(event.space)].add(event.bytes);
      if (event.space != Space::torch) continue;
      if (event.kind == EventKind::allocate)
        live[event.address] = holder(stacks_.of_frames(*event.frames), Space::torch);
      const auto at = live.find(event.address);
      if (event.kind != EventKind::free || at == live.end()) continue;
      holder_state(at->second).freed.add(event.bytes);
      live.erase(at);
    }
  }

  void add_header() {
    // The session starts with the trace. Its clock starts at 1, because 0 means none.
    start_ns_ = trace_.empty() ? written_ns_ : trace_.front().time_us * kNsPerUs;
    end_ns_ = trace_.empty() ? 1 : 1 + (trace_.back().time_us * kNsPerUs - start_ns_);
    session::Header& header = image_.header();
    header.start_realtime_ns = start_ns_;
    header.start_monotonic_ns = 1;
    header.last_tick_ns = end_ns_;
    header.mode = static_cast<session::u8>(Mode::exact);
    header.mode_now = static_cast<session::u32>(Mode::exact);
  }

  void add_devices() {
    for (std::size_t number = 0; number < devices_.size(); ++number) {
      DeviceState& state = devices_[number];
      if (!state.used) continue;
      session::Device row{};
      row.ordinal = static_cast<session::i32>(number);
      row.block_bytes = static_cast<std::int64_t>(state.reserved);
      row.peak_bytes = state.reserved;
      row.torch_allocated_bytes = state.allocated;
      row.torch_reserved_bytes = state.reserved;
      row.torch_time_ns = end_ns_;
      state.entry = image_.add(TableId::devices, row);
    }
  }

  void add_blocks() {
    for (const Block& block : blocks_) {
      if (block.tensor) {
        session::LiveBlock row{};
        row.address = block.address + 1;
        row.bytes = block.bytes & (~std::uint64_t{0} >> 16);  // as the field has them
        row.holder = block.holder;
        row.weight = 1;
        image_.add(TableId::live_blocks, row);
      } else {
        session::DeviceBlock row{};
        row.key = block.address;
        row.bytes = block.bytes;
        row.holder = block.holder;
        row.device = devices_[block.device].entry;
        row.references = 1;
        row.what = static_cast<session::u8>(session::DeviceKey::address);
        row.kind = static_cast<session::u8>(session::DeviceKind::block);
        image_.add(TableId::device_blocks, row);
      }
    }
  }

  void add_holders() {
    for (const HolderState& state : holders_) {
      session::Holder row{};
      row.node = state.node;
      row.space = static_cast<session::u8>(state.space);
      row.api = static_cast<session::u16>(Api::reportMemoryUsageToProfiler);
      row.live_bytes = state.live.bytes;
      row.live_count = state.live.count;
      row.total_bytes = state.live.bytes + state.freed.bytes;
      row.total_count = state.live.count + state.freed.count;
      row.peak_epoch = 1;  // not the current epoch: bytes at the peak are unknown
      image_.add(TableId::holders, row);
    }
  }

  void add_failures() {
    for (TraceEvent& event : trace_) {
      if (event.kind != EventKind::fail) continue;
      const DeviceState& of = devices_[event.device];
      session::Failure row{};
      row.time_ns = session_ns(event);
      row.realtime_ns = event.time_us * kNsPerUs;
      row.bytes = event.bytes;
      row.node = stacks_.of_frames(*event.frames);
      row.api = static_cast<session::u16>(Api::reportOutOfMemoryToProfiler);
      row.space = static_cast<session::u8>(Space::cuda);
      row.error = kOutOfMemory;
      row.device.device = of.entry;
      row.device.free_bytes = event.device_free;
      row.device.counted_bytes = of.reserved;
      row.device.torch_allocated_bytes = of.allocated;
      row.device.torch_reserved_bytes = of.reserved;
      row.device.torch_largest_free_bytes = of.largest_free;
      event.address = image_.add(TableId::failures, row);
    }
    if (!trace_.empty() && trace_.back().kind == EventKind::fail)
      last_failure_ = static_cast<std::uint32_t>(trace_.back().address);
  }
  static constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

  std::uint64_t session_ns(const TraceEvent& event) const {
    return 1 + (event.time_us * kNsPerUs - start_ns_);
  }

  void add_lane() {
    session::Lane lane{};
    for (const Space space : {Space::cuda, Space::torch}) {
      const Sum &live = live_[index(space)], &freed = freed_[index(space)];
      session::SpaceCounters& counters = lane.spaces[index(space)];
      counters.allocated_bytes = live.bytes + freed.bytes;
      counters.allocated_count = live.count + freed.count;
      counters.freed_count = freed.count;
      counters.usable_allocated_bytes = live.bytes + freed.bytes;
      counters.usable_freed_bytes = freed.bytes;
    }
    std::vector<std::uint32_t> entries;
    for (const DeviceState& state : devices_) entries.push_back(state.entry);
    write_ring(trace_, entries, stacks_, image_, lane);
    image_.add(TableId::lanes, lane);
  }

  // Computes the time line backwards from the final state, the only one that is known.
  void add_points() {
    constexpr std::size_t kMostPoints = 1024;
    const std::size_t step = trace_.size() / kMostPoints + 1;
    std::array<std::int64_t, kSpaceCount> held{};
    for (const Space space : {Space::cuda, Space::torch})
      held[index(space)] =
          static_cast<std::int64_t>(std::min(live_[index(space)].bytes, kMostBytes));
    std::array<std::int64_t, kSpaceCount> peak = held;
    for (std::size_t i = trace_.size(); i-- > 0;) {
      const TraceEvent& event = trace_[i];
      if (i % step == 0) add_point(session_ns(event), held);
      std::int64_t& bytes = held[index(event.space)];
      const auto change = static_cast<std::int64_t>(event.bytes);
      if (event.kind == EventKind::allocate) bytes = std::max<std::int64_t>(0, bytes - change);
      if (event.kind == EventKind::free) bytes = std::min<std::int64_t>(bytes + change, kMost);
      peak[index(event.space)] = std::max(peak[index(event.space)], bytes);
    }
    for (const Space space : {Space::cuda, Space::torch})
      image_.header().spaces[index(space)].peak_bytes =
          static_cast<std::uint64_t>(peak[index(space)]);
  }
  static constexpr auto kMost = static_cast<std::int64_t>(kMostBytes);

  void add_point(std::uint64_t time_ns, const std::array<std::int64_t, kSpaceCount>& held) {
    session::Point point{};
    point.time_ns = time_ns;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      point.live_bytes[i] = static_cast<std::uint64_t>(held[i]);
    image_.add(TableId::points, point);
  }

  const Pickle& pickle_;
  recording::Image image_;
  StackNodes stacks_;
  const std::uint64_t written_ns_;
  std::uint64_t start_ns_ = 0, end_ns_ = 0;  // realtime; session clock
  std::uint32_t last_failure_ = 0;
  std::vector<TraceEvent> trace_;
  std::vector<DeviceState> devices_;
  std::vector<Block> blocks_;
  std::vector<HolderState> holders_;
  std::map<std::pair<std::uint32_t, Space>, std::uint32_t> holder_of_;
  std::array<Sum, kSpaceCount> live_{}, freed_{};
};

}  // namespace

bool may_be_snapshot(std::string_view first_bytes) {
  return !first_bytes.empty() && first_bytes[0] == '\x80';  // opcode PROTO
}

ImportedSnapshot import_snapshot(std::string_view file, std::uint64_t written_ns) {
  const Pickle pickle{file};
  return Import{pickle, written_ns}.run();
}

}  // namespace oomrec::tools::formats
