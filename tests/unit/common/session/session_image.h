// Builds a session by hand from the format's definition, without the writer, for tests of readers.
// Entries may be damaged afterwards through at().
//
// The image is in memory, of an imaginary process. Bytes do not move until something is added.
#pragma once

#include <cstring>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "common/session/view.h"

namespace oomrec::session {

template <class T>
inline constexpr TableId kTableOf = TableId::count_;
template <>
inline constexpr TableId kTableOf<Node> = TableId::nodes;
template <>
inline constexpr TableId kTableOf<Holder> = TableId::holders;
template <>
inline constexpr TableId kTableOf<LiveBlock> = TableId::live_blocks;
template <>
inline constexpr TableId kTableOf<LiveRange> = TableId::live_ranges;
template <>
inline constexpr TableId kTableOf<Thread> = TableId::threads;
template <>
inline constexpr TableId kTableOf<Lane> = TableId::lanes;
template <>
inline constexpr TableId kTableOf<Failure> = TableId::failures;
template <>
inline constexpr TableId kTableOf<Module> = TableId::modules;
template <>
inline constexpr TableId kTableOf<Code> = TableId::codes;
template <>
inline constexpr TableId kTableOf<Point> = TableId::points;
template <>
inline constexpr TableId kTableOf<Checkpoint> = TableId::checkpoints;
template <>
inline constexpr TableId kTableOf<CheckpointRow> = TableId::checkpoint_rows;
template <>
inline constexpr TableId kTableOf<Mark> = TableId::marks;

class SessionImage {
 public:
  SessionImage() {
    words_.resize(kHeaderBytes / 8);
    header().magic = kMagic;
    header().version = kVersion;
    header().header_bytes = static_cast<u32>(kHeaderBytes);
    header().state = static_cast<u32>(State::running);
    header().pid = 4242;
    header().start_realtime_ns = 1'700'000'000'000'000'000;
    header().start_monotonic_ns = 1'000'000'000;
    header().mode = static_cast<u8>(Mode::exact);
    header().mode_now = static_cast<u32>(Mode::exact);
    std::memcpy(header().host, "victim", 7);
    std::memcpy(header().oomrec_version, "0.1.0", 6);
    open(TableId::strings, 1, 4);
    open_table<Node>();
    open_table<Holder>();
    open_table<LiveBlock>();
    open_table<LiveRange>();
    open_table<Thread>();
    open_table<Lane>();
    open_table<Failure>();
    open_table<Module>();
    open_table<Code>();
    open_table<Point>();
    open_table<Checkpoint>();
    open_table<CheckpointRow>();
    open_table<Mark>();
  }

  Header& header() { return *reinterpret_cast<Header*>(words_.data()); }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  std::size_t size() const { return words_.size() * 8; }
  Bytes bytes() const { return Bytes::contiguous(words_.data(), size()); }
  View view() const { return View{bytes()}; }

  // Adds an entry, completed by fill(T&).
  template <class T, class Fill>
  u32 add(Fill fill) {
    TableDirectory& table = directory(kTableOf<T>);
    const u64 index = table.committed;
    reach(kTableOf<T>, Chunks{sizeof(T)}.locate(index).chunk);
    directory(kTableOf<T>).committed = index + 1;
    fill(at<T>(static_cast<u32>(index)));
    return static_cast<u32>(index);
  }

  template <class T>
  T& at(u32 index) {
    const Chunks::Slot slot = Chunks{sizeof(T)}.locate(index);
    return *reinterpret_cast<T*>(data() + directory(kTableOf<T>).chunk_offsets[slot.chunk] +
                                 slot.byte);
  }

  StringId string(std::string_view text) {
    u64 id = directory(TableId::strings).committed;
    const u64 bytes = (4 + text.size() + 3) & ~u64{3};
    const Chunks shape{1};
    Chunks::Slot slot = shape.locate(id);
    while (slot.byte + bytes > chunk_bytes(slot.chunk)) {
      id = shape.first(slot.chunk + 1);
      slot = shape.locate(id);
    }
    reach(TableId::strings, slot.chunk);
    std::byte* const to =
        data() + directory(TableId::strings).chunk_offsets[slot.chunk] + slot.byte;
    const auto length = static_cast<u32>(text.size());
    std::memcpy(to, &length, sizeof(length));
    std::memcpy(to + sizeof(length), text.data(), text.size());
    directory(TableId::strings).committed = id + bytes;
    return static_cast<StringId>(id);
  }

  u32 node(u32 parent, u64 frame) {
    return add<Node>([&](Node& node) {
      node.parent = parent;
      node.frame = frame;
    });
  }

  u32 holder(u32 stack, Space space, u64 live_bytes, u64 live_count, Api api = Api::malloc) {
    return add<Holder>([&](Holder& holder) {
      holder.node = stack;
      holder.space = static_cast<u8>(space);
      holder.api = static_cast<u16>(api);
      holder.live_bytes = holder.total_bytes = holder.peak_bytes = live_bytes;
      holder.live_count = holder.total_count = holder.peak_count = live_count;
    });
  }

  u32 lane(u32 ring_slots) {
    const u64 offset = ring_slots == 0 ? 0 : take(u64{ring_slots} * sizeof(Slot));
    return add<Lane>([&](Lane& lane) {
      lane.owner_tid = 4242;
      lane.ring_offset = offset;
      lane.ring_slots = ring_slots;
    });
  }

  // A lane's unpublished sum for one holder.
  void sum(u32 lane_number, u32 holder, u32 allocated, u32 temporary) {
    const u64 offset = take(sizeof(HolderSum) + sizeof(u64));
    Lane& lane = at<Lane>(lane_number);
    lane.sums = 1;
    lane.sums_offset = offset;
    lane.temporaries_offset = offset + sizeof(HolderSum);
    auto& sum = *reinterpret_cast<HolderSum*>(data() + offset);
    sum.node = at<Holder>(holder).node;
    sum.holder = holder;
    sum.counts = u64{allocated} << 32;
    sum.allocated_bytes = u64{allocated} * 100;
    std::memcpy(data() + lane.temporaries_offset, &temporary, sizeof(temporary));
  }

  // Adds an event to a lane's ring, and to its counters.
  void allocate(u32 lane_number, Space space, u64 address, u64 bytes, u32 stack = 0) {
    Lane& lane = at<Lane>(lane_number);
    SpaceCounters& counters = lane.spaces[static_cast<u32>(space)];
    counters.allocated_bytes += bytes;
    counters.usable_allocated_bytes += bytes;
    ++counters.allocated_count;
    RingWriter& ring = rings_[lane_number];
    ring.use(lane, reinterpret_cast<Slot*>(data() + lane.ring_offset));
    ring.append(7, 0, EventKind::allocate, Api::malloc, address, bytes, stack);
  }

  // The slot of event `number` of a lane.
  Slot& slot(u32 lane_number, u64 number) {
    const Lane& lane = at<Lane>(lane_number);
    return reinterpret_cast<Slot*>(data() + lane.ring_offset)[number % lane.ring_slots];
  }

  TableDirectory& directory(TableId table) { return header().tables[static_cast<u32>(table)]; }

 private:
  template <class T>
  void open_table() {
    open(kTableOf<T>, sizeof(T), 1);
  }
  void open(TableId table, u32 entry_bytes, u64 committed) {
    reach(table, 0);
    directory(table).entry_bytes = entry_bytes;
    directory(table).committed = committed;
  }
  void reach(TableId table, u32 chunk) {
    if (directory(table).chunk_offsets[chunk] != 0) return;
    const u64 offset = take(chunk_bytes(chunk));
    directory(table).chunk_offsets[chunk] = offset;
  }
  u64 take(u64 bytes) {
    u64 offset = size();
    const u64 left = kSegmentBytes - offset % kSegmentBytes;
    if (bytes > left) offset += left;
    words_.resize((offset + bytes + 7) / 8);
    header().file_bytes = size();
    header().used_bytes = size();
    return offset;
  }

  std::vector<u64> words_;
  std::map<u32, RingWriter> rings_;
};

// A session with one lane whose events are allocations of these sizes.
inline SessionImage session_with_blocks(std::initializer_list<u64> sizes, u32 ring_slots = 32) {
  SessionImage image;
  const u32 lane = image.lane(ring_slots);
  u64 address = 0x1000;
  for (const u64 bytes : sizes) image.allocate(lane, Space::heap, address += 0x1000, bytes);
  return image;
}

}  // namespace oomrec::session
