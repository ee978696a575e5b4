// A recording over time: moments, marks, failures, limits, checkpoints, ages of blocks.
#include <doctest/doctest.h>

#include <fstream>
#include <utility>

#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/scratch_directory.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/timeline.h"

using namespace oomrec;
using namespace oomrec::tools;
using session::TableId;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kHeap = static_cast<std::size_t>(Space::heap);

// A handmade session, as the tools read it from a file.
struct Image : session::SessionImage {
  Image() {
    open<session::Checkpoint>(TableId::checkpoints);
    open<session::CheckpointRow>(TableId::checkpoint_rows);
    open<session::Mark>(TableId::marks);
    open<session::SidePage>(TableId::side_pages);
  }
  std::uint64_t at(std::uint64_t seconds) {
    return header().start_monotonic_ns + seconds * kSecond;
  }

  tools::recording::Recording recording() {
    const auto path = directory_.path() + "/recording.oomrec";
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(bytes().data()),
                                                static_cast<std::streamsize>(bytes().size()));
    return tools::recording::Recording{path};
  }

  void point(std::uint64_t time_ns, std::uint64_t live) {
    auto& point = add<session::Point>(TableId::points);
    point.time_ns = time_ns;
    point.rss_bytes = 2 * live;
    point.live_bytes[kHeap] = live;
  }

  // Rows are {holder, bytes}.
  session::Checkpoint& checkpoint(
      std::uint64_t time_ns,
      std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> largest) {
    std::uint32_t first = 0;
    for (const auto& [holder, bytes] : largest) {
      std::uint32_t index = 0;
      add<session::CheckpointRow>(TableId::checkpoint_rows, &index) = {
          holder, static_cast<std::uint32_t>((time_ns - header().start_monotonic_ns) / 1'000'000),
          bytes};
      if (first == 0) first = index;
    }
    auto& entry = add<session::Checkpoint>(TableId::checkpoints);
    entry.time_ns = time_ns;
    entry.live_bytes[kHeap] = 1000;
    entry.first_row = first;
    entry.rows = static_cast<std::uint32_t>(largest.size());
    return entry;
  }

 private:
  tests::ScratchDirectory directory_;
};

}  // namespace

TEST_CASE("moments are sorted by time; the last one is the end, exact") {
  Image image;
  image.header().last_tick_ns = image.at(4);
  image.header().health.rss_bytes = 77;
  image.point(image.at(3), 300);
  image.point(image.at(1), 100);
  image.point(0, 999);            // being written
  image.point(image.at(4), 400);  // of the last tick: would duplicate the end
  image.point(image.at(2), 200);
  image.lane(0, 16).spaces[kHeap].usable_allocated_bytes = 412;

  const tools::recording::Timeline timeline = recording::timeline_of(image.recording());

  std::vector<std::uint64_t> live;
  for (const tools::recording::Moment& moment : timeline.moments)
    live.push_back(moment.live_bytes[kHeap]);
  CHECK(live == std::vector<std::uint64_t>{100, 200, 300, 412});
  CHECK(timeline.moments[0].time_ns == image.at(1));
  CHECK(timeline.moments[1].rss_bytes == 400);
  CHECK(timeline.moments.back().time_ns == image.at(4));
  CHECK(timeline.moments.back().rss_bytes == 77);
}

TEST_CASE("device figures join the moment of the same time; the end has the current ones") {
  Image image;
  image.open<session::Device>(TableId::devices);
  image.open<session::DevicePoint>(TableId::device_points);
  auto& device = image.add<session::Device>(TableId::devices);
  device.ordinal = 3;
  device.limit_bytes = 5000;
  device.block_bytes = 900;
  image.header().last_tick_ns = image.at(9);
  image.point(image.at(1), 1);
  image.point(image.at(2), 2);
  auto& seen = image.add<session::DevicePoint>(TableId::device_points);
  seen.time_ns = image.at(2);
  seen.devices[0] = {100, 200, 1000, 50, 60, 0, 1};

  const tools::recording::Timeline timeline = recording::timeline_of(image.recording());

  REQUIRE(timeline.moments.size() == 3);
  CHECK(timeline.moments[0].devices.empty());
  REQUIRE(timeline.moments[1].devices.size() == 1);
  CHECK(timeline.moments[1].devices[0].device == 1);
  CHECK(timeline.moments[1].devices[0].counted_bytes == 100);
  CHECK(timeline.moments[1].devices[0].total_bytes == 1000);
  CHECK(timeline.moments[1].devices[0].torch_reserved_bytes == 60);
  REQUIRE(timeline.moments[2].devices.size() == 1);
  CHECK(timeline.moments[2].devices[0].counted_bytes == 900);
  CHECK(timeline.moments[2].devices[0].total_bytes == 0);
  CHECK(timeline.limits.back().name == "--limit-gpu cuda:3");
  CHECK(timeline.limits.back().device == 1);
}

TEST_CASE("marks and failures are sorted by time; probes are left out") {
  Image image;
  image.add<session::Mark>(TableId::marks) = {image.at(5), image.string("epoch 2"), 1};
  image.add<session::Mark>(TableId::marks) = {image.at(4), image.string("epoch 1"), 0};
  const auto refused = [&](std::uint64_t seconds, std::uint8_t flags) {
    auto& failure = image.add<session::Failure>(TableId::failures);
    failure.time_ns = image.at(seconds);
    failure.flags = flags;
  };
  refused(7, 0);
  refused(6, session::kFailureProbe);
  refused(3, session::kFailureByRecorder);
  image.header().dropped_marks = 9;

  const tools::recording::Timeline timeline = recording::timeline_of(image.recording());

  REQUIRE(timeline.marks.size() == 2);
  CHECK(timeline.marks[0].text == "epoch 1");
  CHECK(timeline.marks[1].thread == 1);
  CHECK(timeline.dropped_marks == 9);
  REQUIRE(timeline.failures.size() == 2);
  CHECK(timeline.failures[0].failure == 3);
  CHECK(timeline.failures[1].failure == 1);
  CHECK(timeline.moments.back().time_ns == image.at(7));
}

TEST_CASE("limits that are not set are left out") {
  Image image;
  image.header().soft_limit_bytes = 10;
  image.header().health.rlimit_as_bytes = session::kUnlimited;
  image.header().health.cgroup_limit_bytes = 30;
  image.header().ram_bytes = 40;

  std::vector<std::string> names;
  for (const tools::recording::LimitLine& line : recording::timeline_of(image.recording()).limits)
    names.push_back(line.name);
  CHECK(names == std::vector<std::string>{"--limit", "cgroup", "RAM"});
}

TEST_CASE("checkpoints are sorted by time, their holders by size; the end comes last") {
  Image image;
  const std::uint32_t stack = image.stack({1});
  const std::uint32_t first = image.holder(stack, Space::heap, 11, 1);
  const std::uint32_t second = image.holder(stack, Space::map, 22, 1);
  image.holder(stack, Space::cuda_va, 99, 1);
  image.header().last_tick_ns = image.at(9);
  image.checkpoint(image.at(2), {{first, 5}, {second, 7}, {4711, 8}});
  image.checkpoint(image.at(1), {{first, 3}});
  image.checkpoint(0, {});
  // A later checkpoint is overwriting the rows of an older one.
  image.checkpoint(image.at(3), {{first, 30}}).time_ns = image.at(4);

  const std::vector<tools::recording::Checkpoint> found =
      recording::checkpoints_of(image.recording());

  REQUIRE(found.size() == 4);
  REQUIRE(found[0].largest.size() == 1);
  CHECK(found[0].largest[0].live_bytes == 3);
  REQUIRE(found[1].largest.size() == 2);
  CHECK(found[1].largest[0].holder == second);
  CHECK(found[1].live_bytes[kHeap] == 1000);
  CHECK(found[2].time_ns == image.at(4));
  CHECK(found[2].largest.empty());
  REQUIRE(found[3].largest.size() == 2);
  CHECK(found[3].time_ns == image.at(9));
  CHECK(found[3].largest[0].live_bytes == 22);
}

TEST_CASE("surplus and missing rows of a checkpoint are left out") {
  Image image;
  const std::uint32_t holder = image.holder(image.stack({1}), Space::heap, 1, 1);
  image.header().last_tick_ns = image.at(9);
  auto& entry = image.checkpoint(image.at(1), {{holder, 1}});
  entry.rows = 0xffff'ffff;
  image.checkpoint(image.at(2), {}).first_row = 0xffff'ffff;
  const auto found = recording::checkpoints_of(image.recording());
  REQUIRE(found.size() == 3);
  CHECK(found[0].largest.size() == 1);
  CHECK(found[1].largest.empty());
}

TEST_CASE("the age of a holder is that of its oldest live block in any table") {
  Image image;
  const std::uint32_t stack = image.stack({1});
  const std::uint32_t other = image.stack({2});
  const std::uint32_t heap = image.holder(stack, Space::heap, 10, 1);
  const std::uint32_t map = image.holder(stack, Space::map, 10, 1);
  const std::uint32_t unknown = image.holder(other, Space::heap, 10, 1);
  const std::uint32_t freed = image.holder(image.stack({3}), Space::heap, 0, 0);
  const auto block = [&](std::uint64_t address, std::uint32_t holder, std::uint32_t birth_s) {
    auto& entry = image.add<session::LiveBlock>(TableId::live_blocks);
    entry.address = address;
    entry.holder = holder;
    entry.birth_s = birth_s;
  };
  block(0x1000, heap, 8);
  block(0x2000, heap, 6);
  block(0, heap, 1);  // free slot
  block(0x3000, freed, 2);
  auto& range = image.add<session::LiveRange>(TableId::live_ranges);
  range.start = 0x5000;
  range.holder = map;
  range.birth_s = 4;
  range.kind = static_cast<std::uint32_t>(session::RangeKind::counted);

  const tools::recording::Recording recording = image.recording();
  auto rows = recording.holders();
  REQUIRE(rows.size() == 4);
  CHECK_FALSE(rows[heap - 1].oldest_ns.has_value());
  recording.add_ages(rows);

  CHECK(rows[heap - 1].oldest_ns == image.at(6));
  CHECK(rows[map - 1].oldest_ns == image.at(4));
  CHECK_FALSE(rows[unknown - 1].oldest_ns.has_value());
  CHECK_FALSE(rows[freed - 1].oldest_ns.has_value());
}

TEST_CASE("small blocks of the side table have ages, too") {
  Image image;
  const std::uint32_t stack = image.stack({1});
  image.holder(stack, Space::heap, 10, 1);
  image.holder(stack, Space::torch, 10, 1);
  constexpr std::uint32_t kPage = 1000;
  image.add<session::SidePage>(TableId::side_pages) = {0x10000, kPage, 5};
  auto* const words =
      reinterpret_cast<std::uint64_t*>(image.bytes().data() + kPage * session::kUnitBytes);
  words[3] = session::packed({0x10060, 10, stack, 12}, 5);
  words[9] = session::packed({0x10120, 10, stack, 7}, 5);

  const tools::recording::Recording recording = image.recording();
  auto rows = recording.holders();
  recording.add_ages(rows);

  CHECK(rows.at(0).oldest_ns == image.at(7));
  CHECK_FALSE(rows.at(1).oldest_ns.has_value());
}

TEST_CASE(
    "a holder whose figures and sums were copied at different moments holds nothing, not 16 EiB") {
  Image image;
  const std::uint32_t stack = image.stack({1});
  const std::uint32_t holder = image.holder(stack, Space::heap, 10, 2);
  auto& lane = image.lane(0, 16);
  lane.sums = 1;
  lane.sums_offset = 8 << 20;
  auto& sum = *reinterpret_cast<session::HolderSum*>(image.bytes().data() + lane.sums_offset);
  sum.node = stack;
  sum.holder = holder;
  const auto held = [&](std::uint64_t freed_bytes, std::uint64_t freed) {
    sum.freed_bytes = freed_bytes;
    sum.counts = freed;
    const auto row = image.recording().holders().at(0);
    return std::pair{row.live_bytes, row.live_count};
  };

  CHECK(held(4, 1) == std::pair<std::uint64_t, std::uint64_t>{6, 1});
  CHECK(held(11, 1) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
  CHECK(held(4, 3) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
}

TEST_CASE("temporary blocks are counted by holders and by lanes") {
  Image image;
  const std::uint32_t stack = image.stack({1});
  const std::uint32_t holder = image.holder(stack, Space::heap, 10, 1);
  auto& lane = image.lane(0, 16);
  constexpr std::uint64_t kAt = 8 << 20;
  lane.sums = 1;
  lane.sums_offset = kAt;
  lane.temporaries_offset = kAt + 4096;
  auto& sum = *reinterpret_cast<session::HolderSum*>(image.bytes().data() + kAt);
  sum.node = stack;
  sum.holder = holder;
  sum.counts = 1;
  auto& temporary = *reinterpret_cast<std::uint32_t*>(image.bytes().data() + kAt + 4096);
  temporary = 5;

  CHECK(image.recording().holders().at(0).temporary_count == 5);
  session::Holder seen{};
  REQUIRE(image.view().holder(holder, seen));
  CHECK(seen.temporary_count == 5);
  temporary = 0xffff'ffff;
  sum.counts = 2;
  REQUIRE(image.view().holder(holder, seen));
  CHECK(seen.temporary_count == 0xffff'ffff);
  lane.temporaries_offset = ~std::uint64_t{3};  // forged
  CHECK(image.recording().holders().at(0).temporary_count == 0);
}
