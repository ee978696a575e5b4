// Two recordings: stacks matched by location and by symbol, and their growth.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/tools/recording_image.h"
#include "tools/findings/diff/difference.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::RecordingImage;

namespace {

struct Side {
  explicit Side(const RecordingImage& image) : recording(image.path()) {}

  findings::DiffSide side() { return {recording, stacks, locations}; }

  recording::Recording recording;
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
};

std::string function_of(const Side& side, recording::StackId stack) {
  return stack == 0 ? "" : side.locations[side.stacks.innermost(stack)].function;
}

std::uint64_t nameless(RecordingImage& image, const char* module, std::uint64_t offset) {
  return session::native_frame(image.module(module, 0x1000), offset);
}

}  // namespace

TEST_CASE("equal stacks of different threads are merged; largest growth first") {
  RecordingImage first;
  RecordingImage second;
  for (RecordingImage* image : {&first, &second}) {
    const bool later = image == &second;
    const std::uint64_t main = image->python("/p/train.py", "main", 10);
    const std::uint64_t grows = image->python("/p/train.py", "grows", 20);
    const std::uint64_t shrinks = image->python("/p/train.py", "shrinks", 30);
    const std::uint64_t once = image->python("/p/train.py", later ? "comes" : "goes", 40);
    image->holder(image->stack({main, grows}), Space::heap, later ? 5000 : 1000, 1, 1);
    image->holder(image->stack({main, grows}), Space::heap, later ? 3000 : 1000, 1, 1);
    image->holder(image->stack({main, grows}), Space::map, 700, 1, 1);
    image->holder(image->stack({main, shrinks}), Space::heap, later ? 100 : 900, 1, 1);
    image->holder(image->stack({main, once}), Space::heap, later ? 2000 : 300, 1, 1);
  }
  Side before{first};
  Side after{second};

  const findings::Difference found =
      findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);

  REQUIRE(found.stacks.size() == 5);
  std::vector<std::int64_t> growth;
  std::vector<std::string_view> words;
  for (const findings::StackChange& row : found.stacks) {
    growth.push_back(row.growth());
    words.push_back(row.word());
  }
  CHECK(growth == std::vector<std::int64_t>{6000, 2000, 0, -300, -800});
  CHECK(words == std::vector<std::string_view>{"grown", "new", "same", "gone", "shrunk"});
  CHECK(found.stacks[0].match == findings::Match::location);
  CHECK(found.stacks[0].before.count == 20);
  CHECK(found.stacks[1].match == findings::Match::none);
  CHECK(function_of(after, found.stacks[1].stack_after) == "comes");
  CHECK(function_of(before, found.stacks[3].stack_before) == "goes");
  CHECK(found.stacks[2].space == Space::map);

  REQUIRE(found.functions.size() == 4);
  CHECK(found.functions[0].growth() == 6000);
  CHECK(found.functions[0].after.bytes == 8700);
}

TEST_CASE("what is filled after it was requested has grown, and what is untouched has not") {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  RecordingImage first, second;
  for (RecordingImage* image : {&first, &second}) {
    const bool later = image == &second;
    const auto holds = [&](const char* function, std::uint64_t bytes) {
      image->holder(image->stack({image->python("/p/train.py", function, 7)}), Space::map, bytes, 1,
                    1);
    };
    holds("filled", 100 * kMiB);
    holds("reserves", later ? 400 * kMiB : 0);
    holds("noise", 50 * kMiB);
    holds("grows", later ? 30 * kMiB : 10 * kMiB);
    image->look({{1, 0, later ? 0 : 100 * kMiB, 0, 0, 0},
                 {2, 0, later ? 399 * kMiB : 0, 0, 0, 0},
                 {3, 0, later ? 4096U : 8192U, 0, 0, 0}});
  }
  Side before{first};
  Side after{second};
  const auto found = [&] {
    return findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);
  };
  const auto ranked = [](const auto& rows) {
    std::vector<std::int64_t> growth;
    for (const auto& row : rows) growth.push_back(row.ranked_growth());
    return growth;
  };
  const auto mib = [](std::int64_t number) { return number * static_cast<std::int64_t>(kMiB); };

  // Neither side is about resident memory: the larger change of the two.
  findings::Difference difference = found();
  CHECK(ranked(difference.stacks) == std::vector{mib(400), mib(100), mib(20), mib(0)});
  CHECK(ranked(difference.functions) == std::vector{mib(400), mib(100), mib(20), mib(0)});
  CHECK(difference.functions[1].growth() == 0);
  CHECK(difference.functions[1].word() == "grown");
  CHECK(difference.functions[0].resident_growth() == mib(1));

  after.recording.set_weight(recording::Weight::resident);
  difference = found();
  CHECK(ranked(difference.stacks) == std::vector{mib(100), mib(20), mib(1), mib(0)});
  CHECK(difference.stacks[0].before.bytes == 100 * kMiB);  // what it was given, whatever ranks it
  CHECK(difference.stacks[0].before.resident_bytes == 0);
  CHECK(difference.stacks[2].word() == "new");
  CHECK(difference.stacks[3].word() == "same");

  const auto ever =
      findings::difference(before.side(), after.side(), recording::At::ever, std::nullopt);
  CHECK_FALSE(ever.stacks[0].after.resident_bytes);
}

TEST_CASE("a function is shown with the line that grew most, or shrank most if it shrank") {
  RecordingImage first;
  RecordingImage second;
  for (RecordingImage* image : {&first, &second}) {
    const bool later = image == &second;
    const auto holds = [&](const char* function, std::uint32_t line, std::uint64_t bytes) {
      image->holder(image->stack({image->python("/p/train.py", function, line)}), Space::heap,
                    bytes, 1, 1);
    };
    holds("step", 4, 9000);
    holds("step", 5, later ? 6000 : 1000);
    holds("step", 7, later ? 2500 : 2000);
    holds("drop", 14, 9000);
    holds("drop", 15, later ? 1000 : 6000);
    holds("drop", 17, 100);
  }
  Side before{first};
  Side after{second};

  const findings::Difference found =
      findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);

  REQUIRE(found.functions.size() == 2);
  CHECK(after.locations[found.functions[0].location_after].line == 5);
  CHECK(before.locations[found.functions[0].location_before].line == 5);
  CHECK(after.locations[found.functions[1].location_after].line == 15);
}

TEST_CASE("if lines and directories differ, functions and file names match") {
  RecordingImage first;
  RecordingImage second;
  for (RecordingImage* image : {&first, &second}) {
    const bool later = image == &second;
    const char* const file = later ? "/new/checkout/train.py" : "/old/train.py";
    const std::uint64_t main = image->python(file, "main", later ? 11 : 10);
    const std::uint64_t keep = image->python(file, "keep", later ? 25 : 20);
    // The same function with two lines, one of which is gone.
    image->holder(image->stack({main, keep}), Space::heap, later ? 900 : 500, 1, 1);
    if (!later) {
      const std::uint64_t also = image->python(file, "keep", 21);
      image->holder(image->stack({main, also}), Space::heap, 200, 1, 1);
    }
    image->holder(image->stack({main, nameless(*image, "/lib/a.so", later ? 5 : 7)}), Space::heap,
                  later ? 60 : 50, 1, 1);
  }
  Side before{first};
  Side after{second};

  const findings::Difference found =
      findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);

  REQUIRE(found.stacks.size() == 2);
  CHECK(found.stacks[0].match == findings::Match::symbol);
  CHECK(found.stacks[0].before.bytes == 700);
  CHECK(found.stacks[0].after.bytes == 900);
  CHECK(found.stacks[1].match == findings::Match::symbol);
  CHECK(found.stacks[1].growth() == 10);
}

TEST_CASE("an equal function in another file, or with another caller, does not match") {
  RecordingImage first;
  RecordingImage second;
  const auto fill = [](RecordingImage& image, const char* file, const char* caller) {
    image.holder(image.stack({image.python("/p/a.py", caller, 1), image.python(file, "keep", 2)}),
                 Space::heap, 100, 1, 1);
  };
  fill(first, "/p/a.py", "main");
  fill(first, "/p/a.py", "other");
  fill(second, "/p/b.py", "main");
  fill(second, "/p/a.py", "third");
  Side before{first};
  Side after{second};

  const findings::Difference found =
      findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);

  CHECK(found.stacks.size() == 4);
  CHECK(std::all_of(found.stacks.begin(), found.stacks.end(), [](const findings::StackChange& row) {
    return row.match == findings::Match::none;
  }));
}

TEST_CASE("one space at the peak, and over all allocations") {
  RecordingImage first;
  RecordingImage second;
  first.holder(first.stack({first.python("/p/a.py", "f", 1)}), Space::heap, 1, 100, 1000);
  second.holder(second.stack({second.python("/p/a.py", "f", 1)}), Space::heap, 1, 300, 7000);
  second.holder(second.stack({second.python("/p/a.py", "f", 1)}), Space::map, 50, 50, 50);
  Side before{first};
  Side after{second};

  const auto growth = [&](recording::At at, std::optional<Space> only) {
    const findings::Difference found = findings::difference(before.side(), after.side(), at, only);
    std::int64_t sum = 0;
    for (const findings::StackChange& row : found.stacks) sum += row.growth();
    return sum;
  };
  CHECK(growth(recording::At::peak, Space::heap) == 200);
  CHECK(growth(recording::At::ever, Space::heap) == 6000);
  CHECK(growth(recording::At::end, Space::map) == 50);
  CHECK(growth(recording::At::end, std::nullopt) == 50);
}

TEST_CASE("changes that are not significant are marked") {
  constexpr std::uint64_t kSample = 512 * 1024;
  RecordingImage first;
  RecordingImage second;
  for (RecordingImage* image : {&first, &second}) {
    const std::uint64_t more = image == &second ? 1 : 0;
    image->session().header().interval_bytes = kSample;
    const auto holder = [&](const char* name, std::uint64_t bytes) {
      image->holder(image->stack({image->python("/p/a.py", name, 1)}), Space::heap, bytes, 1, 1);
    };
    holder("by_chance", (10 + 3 * more) * kSample);
    holder("surely", (10 + 40 * more) * kSample);
    for (const std::uint32_t entry : {1U, 2U})
      image->session().full_holders.at(entry).flags = session::kHolderEstimated;
  }
  Side before{first};
  Side after{second};

  const findings::Difference found =
      findings::difference(before.side(), after.side(), recording::At::end, std::nullopt);

  REQUIRE(found.stacks.size() == 2);
  CHECK_FALSE(found.stacks[0].by_chance);
  CHECK(found.stacks[1].by_chance);
}
