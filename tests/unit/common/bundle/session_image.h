// A session built by hand, entry by entry, for tests of bundles.
//
// Each table gets its first chunks in a buffer of one segment. Entry 0 exists and is zero.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "common/session/view.h"

namespace oomrec::session {

class SessionImage {
 public:
  SessionImage() : bytes_(kSegmentBytes), end_(kHeaderBytes) {
    Header& h = header();
    h.magic = kMagic;
    h.version = kVersion;
    h.header_bytes = kHeaderBytes;
    h.file_bytes = kSegmentBytes;
    h.state = static_cast<u32>(State::running);
    h.pid = 4711;
    h.parent_pid = 4710;
    h.start_ticks = 123456;
    std::memset(h.boot_id, 0xab, sizeof h.boot_id);
    h.start_realtime_ns = 1795256100'000'000'000U;  // 2026-11-21T10:15:00Z
    h.start_monotonic_ns = 5'000'000'000U;
    std::strcpy(h.host, "node7");
    std::strcpy(h.oomrec_version, "0.1.0");
    h.mode = static_cast<u8>(Mode::exact);
    h.ram_bytes = u64{16} << 30;
    h.swap_bytes = u64{2} << 30;
    make<Node>(TableId::nodes);
    make<Holder>(TableId::holders);
    make<LiveBlock>(TableId::live_blocks);
    make<LiveRange>(TableId::live_ranges);
    make<Thread>(TableId::threads);
    make<Lane>(TableId::lanes);
    make<Failure>(TableId::failures);
    make<Module>(TableId::modules);
    make<Code>(TableId::codes);
    make<Point>(TableId::points);
    directory(TableId::strings).entry_bytes = 1;
    directory(TableId::strings).committed = 4;
    string("thread group");
    h.executable = string("/opt/python/bin/python3.11");
    h.working_directory = string("/home/me");
    h.command_line = string(std::string_view{"python3\0train.py\0--token\0***\0--batch=8\0", 40});
  }

  Header& header() { return *reinterpret_cast<Header*>(bytes_.data()); }
  View view() const { return View{Bytes::contiguous(bytes_.data(), bytes_.size())}; }
  std::vector<std::byte>& bytes() { return bytes_; }

  // Adds an entry to a table; stores its number in `index`.
  template <class T>
  T& add(TableId table, u32* index = nullptr) {
    TableDirectory& d = directory(table);
    const u64 number = d.committed;
    T& entry = *reinterpret_cast<T*>(place(d, number, 1));
    d.committed = number + 1;
    if (index != nullptr) *index = static_cast<u32>(number);
    return entry;
  }

  StringId string(std::string_view text) {
    TableDirectory& d = directory(TableId::strings);
    const u64 bytes = (4 + text.size() + 3) / 4 * 4;
    const u64 id = d.committed;
    std::byte* const at = place(d, id, bytes);
    const auto length = static_cast<u32>(text.size());
    std::memcpy(at, &length, 4);
    std::memcpy(at + 4, text.data(), text.size());
    d.committed = id + bytes;
    return static_cast<StringId>(id);
  }

  u32 node(u32 parent, u64 frame) {
    u32 index = 0;
    add<Node>(TableId::nodes, &index) = {parent, parent == 0 ? 1U : 2U, frame};
    return index;
  }

  // A stack, outermost frame first.
  u32 stack(const std::vector<u64>& frames) {
    u32 at = node(0, special_frame(SpecialFrame::thread_group, 4));
    for (const u64 frame : frames) at = node(at, frame);
    return at;
  }

  u32 module(std::string_view path) {
    const StringId id = string(path);
    u32 index = 0;
    Module& m = add<Module>(TableId::modules, &index);
    m.base = 0x7f0000000000U + u64{index} * 0x1000000U;
    m.start = m.base;
    m.end = m.base + 0x800000;
    m.path = id;
    m.build_id[0] = static_cast<u8>(index);
    m.build_id[1] = 0xcd;
    m.build_id_bytes = 20;
    return index;
  }

  u32 holder(u32 at, Space space, u64 bytes, u64 count, u8 flags = 0) {
    u32 index = 0;
    Holder& h = add<Holder>(TableId::holders, &index);
    h.node = at;
    h.space = static_cast<u8>(space);
    h.flags = flags;
    h.live_bytes = bytes;
    h.live_count = count;
    h.total_bytes = bytes;
    h.total_count = count;
    return index;
  }

  Lane& lane(u32 thread, u32 slots) {
    const u64 ring = take(u64{slots} * sizeof(Slot));
    Lane& l = add<Lane>(TableId::lanes);
    l.thread = thread;
    l.ring_offset = ring;
    l.ring_slots = slots;
    return l;
  }

  // The table of GPUs; only programs that use GPUs have one.
  template <class T>
  void open(TableId table) {
    if (directory(table).entry_bytes == 0) make<T>(table);
  }

  // A block on a GPU.
  void event(Lane& lane, EventKind kind, u32 time_ms, Api api, Space space, u32 device, u64 address,
             u64 bytes, u32 stack) {
    ring_of(lane).append_device_event(time_ms, lane.thread, kind,
                                      packed_location(api, space, device), address, bytes, stack);
  }

  void event(Lane& lane, EventKind kind, u32 time_ms, u64 address, u64 bytes, u32 stack) {
    const Api api = kind == EventKind::free ? Api::free : Api::malloc;
    ring_of(lane).append(time_ms, lane.thread, kind, api, address, bytes, stack);
  }

 private:
  TableDirectory& directory(TableId table) { return header().tables[static_cast<u32>(table)]; }

  u64 take(u64 bytes) {
    end_ = (end_ + 7) & ~u64{7};
    const u64 offset = end_;
    end_ += bytes;
    header().used_bytes = end_;
    return offset;
  }

  template <class T>
  void make(TableId table) {
    directory(table).entry_bytes = sizeof(T);
    add<T>(table);
  }

  RingWriter& ring_of(Lane& lane) {
    RingWriter& ring = rings_[&lane];
    if (lane.ring_next == 0)
      ring.use(lane, reinterpret_cast<Slot*>(bytes_.data() + lane.ring_offset));
    return ring;
  }

  // The location of entry `number`; creates its chunk if it is the first in it.
  std::byte* place(TableDirectory& d, u64 number, u64 entries) {
    for (u32 k = 0;; ++k) {
      const u64 capacity = chunk_bytes(k) / d.entry_bytes;
      if (number < capacity) {
        if (number + entries > capacity) throw "a string does not fit its chunk";
        if (d.chunk_offsets[k] == 0) d.chunk_offsets[k] = take(chunk_bytes(k));
        return bytes_.data() + d.chunk_offsets[k] + number * d.entry_bytes;
      }
      number -= capacity;
    }
  }

  std::vector<std::byte> bytes_;
  std::map<const Lane*, RingWriter> rings_;
  u64 end_;
};

// A training loop whose request exceeded its soft limit: the example in the documentation.
struct TrainingSession : SessionImage {
  TrainingSession() {
    Thread& t = add<Thread>(TableId::threads, &thread);
    t.tid = 4711;
    std::strcpy(t.name, "python3");
    header().python.version_hex = 0x030b07f0;
    libc = module("/lib/x86_64-linux-gnu/libc.so.6");
    numpy = module("/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so");
    const StringId file = string("/home/me/train.py");
    const StringId name = string("make_batch");
    Code& c = add<Code>(TableId::codes, &code);
    c.file = file;
    c.name = name;
    c.first_line = 31;
    asked = stack(
        {python_frame(code, 0xffff'ffff), native_frame(numpy, 0x1234), native_frame(libc, 0x9876)});
    holder(asked, Space::heap, u64{640} << 20, 10);
    Lane& l = lane(thread, 64);
    l.spaces[0].usable_allocated_bytes = u64{641} << 20;
    l.spaces[0].allocated_count = 12;
    l.spaces[0].freed_count = 2;
    l.spaces[0].usable_freed_bytes = u64{1} << 20;
    for (u32 i = 0; i < 10; ++i)
      event(l, EventKind::allocate, 100 * i, 0x10000 * (i + 1), u64{64} << 20, asked);
    event(l, EventKind::free, 1000, 0x10000, u64{64} << 20, 0);
    Failure& f = add<Failure>(TableId::failures, &failure);
    f.time_ns = header().start_monotonic_ns + 2'000'000'000U;
    f.realtime_ns = header().start_realtime_ns + 2'000'000'000U;
    f.bytes = u64{412} << 20;
    f.node = asked;
    f.thread = thread;
    f.api = static_cast<u16>(Api::malloc);
    f.space = static_cast<u8>(Space::heap);
    f.error = 12;
    f.live_bytes = (u64{987} << 20) + (u64{3} << 20) / 10;
    f.soft_limit_bytes = u64{1} << 30;
    f.rss_bytes = u64{1} << 30;
    f.ram_bytes = header().ram_bytes;
    f.swap_bytes = header().swap_bytes;
    f.flags = kFailureByRecorder;
  }
  u32 thread = 0, libc = 0, numpy = 0, code = 0, asked = 0, failure = 0;
};

}  // namespace oomrec::session
