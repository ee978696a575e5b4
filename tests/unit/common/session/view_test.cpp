// Reading sessions that are complete, cut, torn and forged.
#include "common/session/view.h"
#include "common/machine/page.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <random>
#include <string>

#include "tests/unit/common/session/exercise.h"
#include "tests/unit/common/session/session_image.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

// Bytes at the end of which reading further faults.
class BeforeAFault {
 public:
  explicit BeforeAFault(std::size_t capacity) : capacity_(machine::page_up(capacity)) {
    void* const mapping = mmap(nullptr, capacity_ + machine::page_bytes(), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapping != MAP_FAILED);
    start_ = static_cast<std::byte*>(mapping);
    REQUIRE(mprotect(start_ + capacity_, machine::page_bytes(), PROT_NONE) == 0);
  }
  ~BeforeAFault() { munmap(start_, capacity_ + machine::page_bytes()); }
  BeforeAFault(const BeforeAFault&) = delete;
  BeforeAFault& operator=(const BeforeAFault&) = delete;

  // A copy aligned to 8, so up to 7 bytes remain between its end and the fault.
  Bytes copy(const std::byte* from, std::size_t bytes) {
    std::byte* const to = start_ + capacity_ - (bytes + 7) / 8 * 8;
    std::memcpy(to, from, bytes);
    return Bytes::contiguous(to, bytes);
  }

 private:
  std::size_t capacity_;
  std::byte* start_;
};

std::vector<u64> sizes_of_events(const View& view) {
  std::vector<u64> sizes;
  Lane lane{};
  Event event{};
  REQUIRE(view.read(TableId::lanes, 1, lane));
  for (u64 number = 0; number < lane.ring_next; ++number) {
    if (view.event(lane, number, event) && !event.is_stamp()) sizes.push_back(event.bytes);
  }
  return sizes;
}

// A little of everything.
SessionImage varied_session() {
  SessionImage image = session_with_blocks({101, 211, 307, 401, 503, 601, 701, 809, 907, 1009});
  const StringId group = image.string("worker");
  const StringId path = image.string("/usr/lib/libvictim.so");
  image.header().command_line = image.string(std::string_view{"python3\0train.py", 16});
  image.header().executable = image.string("/usr/bin/python3");
  u32 stack = image.node(0, special_frame(SpecialFrame::thread_group, group));
  for (u32 depth = 0; depth < 40; ++depth) stack = image.node(stack, native_frame(1, depth * 16));
  for (u32 number = 1; number < 60; ++number)
    image.holder(stack - number % 40, Space::heap, number * 97, number);
  image.add<LiveBlock>([](LiveBlock& block) { block.address = 0x7000; });
  image.add<LiveRange>([](LiveRange& range) { range.start = 0x10000; });
  image.add<Thread>([&](Thread& thread) { thread.group = group; });
  image.add<Module>([&](Module& module) { module.path = path; });
  image.add<Code>([&](Code& code) { code.file = code.name = code.line_table = path; });
  image.add<Failure>([&](Failure& failure) { failure.node = stack; });
  image.add<Point>([](Point& point) { point.rss_bytes = 1'234'567; });
  const u32 row = image.add<CheckpointRow>([](CheckpointRow& entry) { entry = {7, 1, 679}; });
  image.add<Checkpoint>([&](Checkpoint& checkpoint) {
    checkpoint.time_ns = 1;
    checkpoint.first_row = row;
    checkpoint.rows = 1;
  });
  image.add<Mark>([&](Mark& mark) { mark = {1, group, 1}; });
  image.sum(1, 7, 3, 2);
  return image;
}

Problem problem_of(const SessionImage& image) { return image.view().problem(); }

}  // namespace

TEST_CASE("a complete session reads as it was written") {
  SessionImage image = varied_session();
  const View view = image.view();

  REQUIRE(view.problem() == Problem::none);
  CHECK(view.count(TableId::holders) == 60);
  CHECK(view.count(TableId::checkpoints) == 2);
  CHECK(view.count(TableId::device_points) == 0);
  CHECK(view.string(view.header().executable) == "/usr/bin/python3");
  CHECK(view.string(0).empty());
  Holder holder{};
  REQUIRE(view.read(TableId::holders, 7, holder));
  CHECK(holder.live_bytes == 7 * 97);
  REQUIRE(view.holder(7, holder));
  CHECK(holder.live_bytes == 7 * 97 + 300);
  CHECK(holder.temporary_count == 2);
  std::vector<u64> frames;
  CHECK(view.walk(41, [&](u64 frame) { frames.push_back(frame); }) == 41);
  CHECK(frames.front() == native_frame(1, 39 * 16));
  CHECK(special_of(frames.back()) == SpecialFrame::thread_group);
  CHECK(view.totals(Space::heap).allocated_count == 10);
  CHECK(view.totals(Space::heap).live_bytes ==
        101 + 211 + 307 + 401 + 503 + 601 + 701 + 809 + 907 + 1009);
}

TEST_CASE("entries are where the chunk arithmetic says, for every entry size") {
  u64 wrong = 0, rounds = 0;
  for (const u32 entry_bytes : {1u, 8u, 16u, 28u, 32u, 72u, 144u, 2144u, 4096u}) {
    const Chunks shape{entry_bytes};
    u64 first = 0;
    for (u32 chunk = 0; chunk < 20; ++chunk) {
      const u32 capacity = static_cast<u32>(chunk_bytes(chunk)) / entry_bytes;
      for (const u64 within : {u64{0}, u64{capacity} / 2, u64{capacity} - 1}) {
        const Chunks::Slot slot = shape.locate(first + within);
        wrong += slot.chunk != chunk || slot.byte != within * entry_bytes;
        ++rounds;
      }
      wrong += shape.first(chunk) != first;
      first += capacity;
    }
  }
  CHECK(rounds == 9 * 20 * 3);
  CHECK(wrong == 0);
}

TEST_CASE("a ring holds the latest events") {
  const SessionImage image = session_with_blocks({11, 13, 17, 19, 23, 29}, 4);
  CHECK(sizes_of_events(image.view()) == std::vector<u64>{19, 23, 29});  // and their stamp
}

TEST_CASE("a writer killed inside a slot loses only that event") {
  SessionImage image = session_with_blocks({101, 211, 307});
  SUBCASE("after its second word") { image.slot(1, 2).first = 0; }
  SUBCASE("before it wrote to the slot of the previous lap") {
    constexpr u64 kLap = u64{1} << 58;
    image.slot(1, 2).first -= kLap;
    image.slot(1, 2).second -= kLap;
  }

  CHECK(sizes_of_events(image.view()) == std::vector<u64>{101, 307});
}

TEST_CASE("an event has its time and thread, whatever is between it and its stamp") {
  SessionImage image;
  const u32 lane_number = image.lane(16384);
  RingWriter ring;
  Lane& lane = image.at<Lane>(lane_number);
  ring.use(lane, reinterpret_cast<Slot*>(image.data() + lane.ring_offset));
  constexpr u64 kTiB = u64{1} << 40;
  constexpr u32 kEvents = 10'000;  // stamps of all kinds occur at every position
  const auto bytes_of = [](u32 i) { return i % 5 == 0 ? kTiB + i : i; };
  for (u32 i = 0; i < kEvents; ++i)
    ring.append(i / 7, 70'000 + i / 90, EventKind::map, Api::mmap, 0x7fff'0000'0000 + i,
                bytes_of(i), i);
  u32 next = 0, stamps = 0;
  Event event;
  for (u64 number = 0; number < lane.ring_next; ++number) {
    if (!image.view().event(lane, number, event)) continue;
    if (event.is_stamp()) {
      ++stamps;
      continue;
    }
    CHECK(event.address == 0x7fff'0000'0000 + next);
    CHECK(event.bytes == bytes_of(next));
    CHECK(event.time_ms == next / 7);
    CHECK(event.thread == ((70'000 + next / 90) & 0xffff));
    CHECK(event.stack == next);
    CHECK(event.api == Api::mmap);
    ++next;
  }
  CHECK(next == kEvents);
  CHECK(stamps == lane.stamps);
  CHECK(stamps >= 3);
}

namespace {

// Events of GPUs in a ring: size and location of each, if both are known.
struct DeviceEvent {
  u64 address, bytes;
  u32 device;
  bool operator==(const DeviceEvent&) const = default;
};
std::vector<DeviceEvent> device_events(const View& view, const Lane& lane) {
  std::vector<DeviceEvent> events;
  Event event;
  for (u64 number = 0; number < lane.ring_next; ++number) {
    if (!view.event(lane, number, event) || event.is_stamp()) continue;
    CHECK(event.api == Api::cuMemAlloc);
    CHECK(event.space == Space::cuda);
    events.push_back({event.address, event.bytes, event.device});
  }
  return events;
}

}  // namespace

TEST_CASE("an event of a GPU: its size and location, whatever is between them") {
  SessionImage image;
  const u32 lane_number = image.lane(65536);
  RingWriter ring;
  Lane& lane = image.at<Lane>(lane_number);
  ring.use(lane, reinterpret_cast<Slot*>(image.data() + lane.ring_offset));
  std::vector<DeviceEvent> expected;
  for (u32 i = 0; i < 10'000; ++i) {  // stamps of all kinds occur at every position
    expected.push_back({u64{0x7fff'0000'0000} + i, i % 3 == 0 ? (u64{1} << 35) + i : i, i % 70});
    ring.append_device_event(i / 7, 5, EventKind::allocate,
                             packed_location(Api::cuMemAlloc, Space::cuda, expected[i].device),
                             expected[i].address, expected[i].bytes, i);
  }
  CHECK(device_events(image.view(), lane) == expected);
}

TEST_CASE("a writer killed anywhere in an event of a GPU loses no other event") {
  constexpr u64 kTiB = u64{1} << 40;
  const std::vector<DeviceEvent> expected{
      {0x1000, kTiB, 1}, {0x2000, kTiB + 1, 2}, {0x3000, kTiB + 2, 3}};
  for (u64 torn = 0; torn < 10; ++torn) {
    CAPTURE(torn);
    SessionImage image;
    const u32 lane_number = image.lane(64);
    RingWriter ring;
    Lane& lane = image.at<Lane>(lane_number);
    ring.use(lane, reinterpret_cast<Slot*>(image.data() + lane.ring_offset));
    for (const DeviceEvent& one : expected) {
      ring.append_device_event(7, 5, EventKind::allocate,
                               packed_location(Api::cuMemAlloc, Space::cuda, one.device),
                               one.address, one.bytes, 1);
    }
    const u64 event = torn == 0 ? 3 : (torn - 1) / 3;  // 0 is the stamp, then three slots each
    std::vector<DeviceEvent> left = expected;
    if (event < left.size())
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(event));
    else
      left.clear();  // without a stamp their time is unknown
    image.slot(lane_number, torn).first = 0;
    CHECK(device_events(image.view(), lane) == left);
  }
}

TEST_CASE("the slot of a live block that is being changed reads as free") {
  SessionImage image;
  image.add<LiveBlock>([](LiveBlock& block) {
    block.bytes = 101;  // the address is stored last
  });
  LiveBlock block{};
  REQUIRE(image.view().read(TableId::live_blocks, 1, block));
  CHECK(block.address == 0);
}

TEST_CASE("fields that an older writer's entries lack read as zero") {
  SessionImage image;
  image.add<Failure>([](Failure& failure) {
    failure.bytes = 101;
    failure.error = 12;
  });
  image.directory(TableId::failures).entry_bytes = 24;
  Failure failure{};
  failure.error = 99;
  // Entry 1 of 24 bytes starts inside the former entry 0.
  REQUIRE(image.view().read(TableId::failures, 1, failure));
  CHECK(failure.error == 0);
  CHECK(failure.cgroup_limit_bytes == 0);
  CHECK_FALSE(image.view().read(TableId::failures, 2, failure));
}

TEST_CASE("lanes before version 5 have sums without counts of temporary blocks") {
  SessionImage image = varied_session();
  image.header().version = 4;
  image.directory(TableId::lanes).entry_bytes = offsetof(Lane, temporaries_offset);
  Holder holder{};
  REQUIRE(image.view().holder(7, holder));
  CHECK(holder.live_bytes == 7 * 97 + 300);
  CHECK(holder.temporary_count == 0);
}

TEST_CASE("lanes from version 5 on have counts of temporary blocks") {
  SessionImage image = varied_session();
  Holder now{}, before{};
  REQUIRE(image.view().holder(7, now));
  CHECK(now.temporary_count != 0);
  image.header().version = 11;  // which has no requests in flight behind them
  image.directory(TableId::lanes).entry_bytes = offsetof(Lane, in_flight);
  REQUIRE(image.view().holder(7, before));
  CHECK(before.temporary_count == now.temporary_count);
}

TEST_CASE("a checkpoint that is being written reads as such") {
  SessionImage image = varied_session();
  image.at<Checkpoint>(1).time_ns = 0;
  Checkpoint checkpoint{};
  REQUIRE(image.view().read(TableId::checkpoints, 1, checkpoint));
  CHECK(checkpoint.time_ns == 0);
}

TEST_CASE("an unusable header has a reason") {
  SessionImage image;
  CHECK(problem_of(image) == Problem::none);
  SUBCASE("no session") {
    image.header().magic ^= 1;
    CHECK(problem_of(image) == Problem::not_a_session);
  }
  SUBCASE("a newer format") {
    image.header().version = kVersion + 3;
    CHECK(problem_of(image) == Problem::newer_format);
    CHECK(image.view().format() == kVersion + 3);
  }
  SUBCASE("never finished") {
    image.header().state = static_cast<u32>(State::starting);
    CHECK(problem_of(image) == Problem::unfinished);
  }
  SUBCASE("no such state") {
    image.header().state = 77;
    CHECK(problem_of(image) == Problem::damaged);
  }
  SUBCASE("a header that is too short") {
    image.header().header_bytes = 100;
    CHECK(problem_of(image) == Problem::damaged);
  }
  SUBCASE("a short file of another format") {
    const char text[] = "import numpy as np";
    CHECK(View{Bytes::contiguous(text, sizeof text)}.problem() == Problem::not_a_session);
  }
  SUBCASE("an empty file") {
    CHECK(View{}.problem() == Problem::too_short);
    CHECK(View{}.count(TableId::nodes) == 0);
    CHECK(View{}.string(4).empty());
    CHECK(life_of(View{}) == Life::dead);
  }
}

TEST_CASE("a forged session only yields less") {
  SessionImage image = varied_session();
  Node node{};
  const u64 nodes = image.directory(TableId::nodes).committed;

  SUBCASE("a chunk beyond the end") {
    for (const u64 offset :
         {image.size(), image.size() - 8, ~u64{0}, ~u64{0} - 4095, u64{1} << 62}) {
      image.directory(TableId::nodes).chunk_offsets[0] = offset;
      CHECK_FALSE(image.view().read(TableId::nodes, 3, node));
    }
  }
  SUBCASE("a chunk over the header, or between words") {
    for (const u64 offset : {u64{0}, u64{8}, kHeaderBytes - 8, kHeaderBytes + 1}) {
      image.directory(TableId::nodes).chunk_offsets[0] = offset;
      CHECK_FALSE(image.view().read(TableId::nodes, 3, node));
    }
  }
  SUBCASE("more entries than a file can hold") {
    image.directory(TableId::nodes).committed = ~u64{0};
    CHECK(image.view().count(TableId::nodes) == image.size() / sizeof(Node));
    CHECK_FALSE(image.view().read(TableId::nodes, 300, node));
  }
  SUBCASE("entries of no size") {
    for (const u32 bytes : {0u, 1u, 7u, 9u, 4100u, ~0u}) {
      image.directory(TableId::nodes).entry_bytes = bytes;
      CHECK(image.view().count(TableId::nodes) == 0);
    }
    image.directory(TableId::strings).entry_bytes = 8;
    CHECK(image.view().string(4).empty());
  }
  SUBCASE("a circular stack") {
    image.at<Node>(5).parent = 20;
    image.at<Node>(1).parent = 1;
    CHECK(image.view().walk(static_cast<u32>(nodes) - 1, [](u64) {}) < kMaxFrames);
    CHECK(image.view().walk(5, [](u64) {}) == 1);
    CHECK(image.view().walk(1, [](u64) {}) == 1);
    CHECK(image.view().walk(~0u, [](u64) {}) == 0);
  }
  SUBCASE("a string longer than its chunk") {
    const u64 strings = image.directory(TableId::strings).chunk_offsets[0];
    for (const u32 length : {4089u, 65'537u, ~0u, ~0u - 3}) {
      std::memcpy(image.data() + strings + 4, &length, sizeof(length));
      CHECK(image.view().string(4).empty());
    }
    CHECK(image.view().string(5).empty());
    CHECK(image.view().string(~0u & ~3u).empty());
  }
  SUBCASE("a ring somewhere else") {
    Lane lane{};
    Event event{};
    REQUIRE(image.view().read(TableId::lanes, 1, lane));
    const u64 ring = lane.ring_offset;
    REQUIRE(image.view().event(lane, 9, event));
    lane.ring_slots = 7;
    CHECK_FALSE(image.view().event(lane, 9, event));
    lane.ring_slots = 1u << 31;
    CHECK_FALSE(image.view().event(lane, 9, event));
    lane.ring_slots = 32;
    for (const u64 offset : {u64{0}, ring + 1, image.size(), ~u64{0} - 7}) {
      lane.ring_offset = offset;
      CHECK_FALSE(image.view().event(lane, 9, event));
    }
  }
}

TEST_CASE("a session cut at any length is read up to its end") {
  SessionImage image = varied_session();
  BeforeAFault memory{image.size()};
  u64 rounds = 0, readable = 0, sum = 0;
  for (std::size_t bytes = 0; bytes <= image.size(); ++bytes) {
    const View view{memory.copy(image.data(), bytes)};
    readable += view.problem() == Problem::none;
    if (bytes % 13 == 0 || bytes + 200 > image.size()) sum += exercise(view);
    ++rounds;
  }
  CHECK(rounds == image.size() + 1);
  CHECK(readable == image.size() - kHeaderBytes + 1);
  CHECK(sum != 0);
}

TEST_CASE("a session with any bit flipped is read without harm") {
  SessionImage image = varied_session();
  BeforeAFault memory{image.size()};
  u64 rounds = 0, sum = 0;
  for (std::size_t at = 0; at < image.size(); at += at < 2 * 4096 ? 7 : 37) {
    const auto bit = static_cast<std::byte>(1u << (at % 8));
    image.data()[at] ^= bit;
    sum += exercise(View{memory.copy(image.data(), image.size())});
    image.data()[at] ^= bit;
    ++rounds;
  }
  CHECK(rounds > 2000);
  CHECK(sum != 0);
}

TEST_CASE("ten thousand mutations are read without harm") {
  const SessionImage original = varied_session();
  BeforeAFault memory{original.size()};
  std::mt19937_64 random{20261121};
  constexpr u64 kNasty[] = {0,           1,           7,       8,      4095, 4096, kHeaderBytes,
                            0x7fff'ffff, 0xffff'ffff, ~u64{0}, ~u64{7}};
  constexpr u64 kTables = static_cast<u64>(TableId::count_) * sizeof(TableDirectory);
  u64 rounds = 0, read = 0, sum = 0;
  for (; rounds < 10'000; ++rounds) {
    SessionImage image = original;
    for (u64 changes = 1 + random() % 8; changes != 0; --changes) {
      // Half of the changes are in the header's directory, where they do most harm.
      const std::size_t at = random() % 2 == 0 ? 864 + random() % kTables : random() % image.size();
      const u64 value = random() % 2 == 0 ? kNasty[random() % std::size(kNasty)] : random();
      const std::size_t bytes =
          std::min<std::size_t>(std::size_t{1} << random() % 4, image.size() - at);
      std::memcpy(image.data() + at, &value, bytes);
    }
    const View view{memory.copy(image.data(), image.size())};
    read += view.problem() == Problem::none;
    sum += exercise(view);
  }
  CHECK(rounds == 10'000);
  CHECK(read > 5'000);
  CHECK(sum != 0);
}
