// Figures of a recording: merged holders, call trees, statistics.
#include <doctest/doctest.h>

#include <fstream>

#include "common/residency/rows.h"
#include "tests/unit/tools/recording_image.h"
#include "tools/base/error.h"
#include "tools/recording/analysis/call_tree.h"
#include "tools/recording/analysis/statistics.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::RecordingImage;

namespace {

// main → a → leaf twice (from two threads), main → b → leaf, and a holder in another space.
struct Sample {
  RecordingImage image;
  Sample() {
    const std::uint64_t main = image.python("/p/train.py", "main", 10);
    const std::uint64_t a = image.python("/p/train.py", "a", 20);
    const std::uint64_t b = image.python("/p/train.py", "b", 30);
    const std::uint64_t leaf = image.python("/p/lib.py", "leaf", 40);
    image.holder(image.stack({main, a, leaf}), Space::heap, 101, 1001, 5001);
    image.holder(image.stack({main, a, leaf}), Space::heap, 203, 2003, 6001);
    image.holder(image.stack({main, b, leaf}), Space::heap, 307, 3, 7001);
    image.holder(image.stack({main, b}), Space::map, 409, 409, 8001);
    image.holder(image.stack({main, b}), Space::heap, 0, 0, 0);
  }
};

std::string function_of(const recording::TreeNode& node, const recording::Locations& locations) {
  return locations[node.location].function;
}

}  // namespace

TEST_CASE("holders with equal stacks are merged, largest first") {
  Sample sample;
  const recording::Recording recording{sample.image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};

  const auto rows = recording::merged(recording.holders(), stacks, recording::At::end);

  REQUIRE(rows.size() == 3);
  CHECK(rows[0].bytes == 409);
  CHECK(rows[0].space == Space::map);
  CHECK(rows[1].bytes == 307);
  CHECK(rows[2].bytes == 101 + 203);
  CHECK(recording::merged(recording.holders(), stacks, recording::At::peak)[0].bytes ==
        1001 + 2003);
  const std::vector<recording::LocationId> stack = stacks.locations(rows[2].stack);
  REQUIRE(stack.size() == 3);
  CHECK(locations[stack[0]].function == "leaf");
  CHECK(locations[stack[0]].line == 40);
  CHECK(locations[stack[2]].function == "main");
}

TEST_CASE("holders that differ only in the interpreter's functions are merged") {
  RecordingImage image;
  const std::uint64_t main = image.python("/p/train.py", "main", 10);
  const std::uint64_t keep = image.python("/p/train.py", "keep", 20);
  const auto in = [&](const char* path) { return image.frames_of(path); };
  const auto python = in("/opt/oomrec-test/bin/python3.11");
  const auto umath = in("/opt/oomrec-test/_umath.so");
  const auto module = in("/opt/oomrec-test/python_magic.so");
  const std::uint32_t first = image.stack({python(1), main, python(2), keep, python(3), umath(1)});
  const std::uint32_t later = image.stack({python(1), main, keep, python(4), umath(1)});
  image.holder(first, Space::heap, 101, 101, 101);
  image.holder(later, Space::heap, 503, 503, 503);
  image.holder(later, Space::map, 53, 53, 53);
  image.holder(image.stack({python(1), main, keep, umath(2)}), Space::heap, 41, 41, 41);
  image.holder(image.stack({main, module(1), keep, umath(1)}), Space::heap, 31, 31, 31);
  // Without Python code in the stack, the interpreter's functions are kept.
  image.holder(image.stack({python(1), python(5)}), Space::heap, 23, 23, 23);
  image.holder(image.stack({python(1), python(6)}), Space::heap, 19, 19, 19);
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};

  const auto rows = recording::merged(recording.holders(), stacks, recording::At::end);

  std::vector<std::uint64_t> bytes;
  for (const recording::StackFigures& row : rows) bytes.push_back(row.bytes);
  CHECK(bytes == std::vector<std::uint64_t>{101 + 503, 53, 41, 31, 23, 19});
  CHECK(rows[0].count == 1 + 5);
  CHECK(stacks.locations(rows[0].stack) == locations.of_stack(later));
  const recording::TreeNode root = recording::call_tree(rows, stacks, locations, {});
  REQUIRE(!root.children.empty());
  const recording::TreeNode& asked = root.children[0];
  CHECK(asked.bytes == 101 + 503 + 53 + 31);
  REQUIRE(asked.children.size() == 1);
  CHECK(function_of(asked.children[0], locations) == "keep");
  CHECK(asked.children[0].children[0].bytes == 101 + 503 + 53);
  CHECK(function_of(asked.children[0].children[0], locations) == "main");
}

TEST_CASE("each of many callees of one function has one stack, for all threads") {
  constexpr std::uint32_t kLines = 100;
  RecordingImage image;
  const std::uint64_t main = image.python("/p/train.py", "main", 10);
  for (std::uint32_t i = 0; i < 2 * kLines; ++i) {
    const std::uint64_t callee = image.python("/p/train.py", "callee", 20 + i % kLines);
    image.holder(image.stack({main, callee}), Space::heap, 1000 + i, 1, 1);
  }
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};

  const auto rows = recording::merged(recording.holders(), stacks, recording::At::end);

  REQUIRE(rows.size() == kLines);
  for (std::uint32_t i = 0; i < kLines; ++i) {
    const recording::LocationId callee = stacks.innermost(rows[i].stack);
    CHECK(rows[i].bytes == 2 * (1000 + locations[callee].line - 20) + kLines);
    CHECK(locations[stacks.innermost(stacks.parent(rows[i].stack))].function == "main");
  }
  CHECK(stacks.size() == 1 + 1 + kLines);
  for (const bool top_down : {false, true}) {
    recording::TreeBounds bounds;
    bounds.top_down = top_down;
    const recording::TreeNode root = recording::call_tree(rows, stacks, locations, bounds);
    CHECK((top_down ? root.children.at(0) : root).children.size() == kLines);
  }
}

TEST_CASE("a holder unchanged since the peak held its current bytes at the peak") {
  Sample sample;
  sample.image.session().header().spaces[0].peak_epoch = 7;
  const recording::Recording recording{sample.image.path()};
  CHECK(recording.holders()[0].peak_bytes == 101);
}

TEST_CASE("the inverted tree begins with the allocating function") {
  Sample sample;
  const recording::Recording recording{sample.image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
  const auto rows = recording::merged(recording.holders(), stacks, recording::At::end);

  SUBCASE("inverted") {
    const recording::TreeNode root = recording::call_tree(rows, stacks, locations, {});
    CHECK(root.bytes == 101 + 203 + 307 + 409);
    REQUIRE(root.children.size() == 2);
    CHECK(function_of(root.children[0], locations) == "leaf");
    CHECK(root.children[0].bytes == 101 + 203 + 307);
    REQUIRE(root.children[0].children.size() == 2);
    CHECK(function_of(root.children[0].children[0], locations) == "b");
    CHECK(function_of(root.children[0].children[1], locations) == "a");
    CHECK(root.children[0].children[1].bytes == 304);
  }
  SUBCASE("top down") {
    recording::TreeBounds bounds;
    bounds.top_down = true;
    const recording::TreeNode root = recording::call_tree(rows, stacks, locations, bounds);
    REQUIRE(root.children.size() == 1);
    CHECK(function_of(root.children[0], locations) == "main");
    CHECK(root.children[0].children[0].bytes == 307 + 409);
  }
  SUBCASE("small branches and deep ones are left out") {
    recording::TreeBounds bounds;
    bounds.max_depth = 1;
    bounds.min_share = 0.5;
    const recording::TreeNode root = recording::call_tree(rows, stacks, locations, bounds);
    REQUIRE(root.children.size() == 1);
    CHECK(root.children[0].children.empty());
    CHECK(root.children[0].is_cut);
    CHECK(root.small_children == 1);
    CHECK(root.small_bytes == 409);
    CHECK_FALSE(recording::call_tree(rows, stacks, locations, {}).children[0].is_cut);
  }
}

TEST_CASE("statistics sum all allocations by the innermost Python line") {
  Sample sample;
  const recording::Recording recording{sample.image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};

  const recording::Statistics statistics = recording::statistics_of(recording, stacks, locations);

  REQUIRE(statistics.by_bytes.size() == 2);
  CHECK(locations[statistics.by_bytes[0].location].function == "leaf");
  CHECK(statistics.by_bytes[0].bytes == 5001 + 6001 + 7001);
  CHECK(locations[statistics.by_count[1].location].function == "b");
}

TEST_CASE("the subject of a stack is the innermost line of the program's own Python code") {
  RecordingImage image;
  const std::uint64_t main = image.python("/home/me/train.py", "main", 10);
  const std::uint64_t ones = image.python("/v/lib/python3.11/site-packages/numpy/n.py", "ones", 20);
  const std::uint64_t load = image.python("<frozen importlib._bootstrap>", "load", 30);
  const std::uint32_t own = image.stack({main, ones});
  const std::uint32_t foreign = image.stack({load, ones});
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
  const auto subject = [&](std::uint32_t node) {
    const recording::StackId stack = stacks.of_node(node);
    return locations[recording::subjects_of(stacks, locations)[stack]].function;
  };

  CHECK(subject(own) == "main");
  CHECK(subject(foreign) == "ones");
}

TEST_CASE("that a stack was cut is not its subject, and its innermost frame is") {
  RecordingImage image;
  const std::uint64_t cut = session::special_frame(session::SpecialFrame::truncated, 0);
  const auto stripped = image.frames_of("/usr/lib/erlang/bin/beam.smp");
  const std::uint32_t nameless = image.stack({cut, stripped(0x20), stripped(0x10)});
  const std::uint32_t named = image.stack({cut, image.python("/p/a.py", "f", 1), stripped(0x10)});
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
  const auto subject = [&](std::uint32_t node) {
    const recording::StackId stack = stacks.of_node(node);
    return locations[recording::subjects_of(stacks, locations)[stack]];
  };

  CHECK(subject(nameless).offset == 0x10);
  CHECK(subject(named).function == "f");
}

TEST_CASE("what Go's runtime commits for its heap is that heap, and other memory of its is not") {
  RecordingImage image;
  const auto frame = [&](const char* function) { return image.python("/go/r.go", function, 1); };
  const std::uint64_t system_stack = frame("runtime.systemstack"),
                      grow = frame("runtime.(*mheap).grow"), commit = frame("runtime.sysMap"),
                      map = frame("runtime.mmap"), persistent = frame("runtime.persistentalloc"),
                      allocate = frame("runtime.sysAlloc");
  const std::uint32_t heap = image.stack({system_stack, grow, commit, map});
  const std::uint32_t other = image.stack({system_stack, persistent, allocate, map});
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
  const auto names = [&](std::uint32_t node) {
    std::vector<std::string> functions;
    for (const recording::LocationId id : stacks.locations(stacks.of_node(node)))
      functions.push_back(locations[id].function);
    return functions;
  };

  CHECK(names(heap) == std::vector<std::string>{"[the Go heap: objects of the program, or free]"});
  CHECK(names(other) == std::vector<std::string>{"runtime.mmap", "runtime.sysAlloc",
                                                 "runtime.persistentalloc", "runtime.systemstack"});
}

TEST_CASE("a file that is not a recording is reported as bad input") {
  const std::string path = "/tmp/oomrec-test-no-recording";
  std::ofstream{path} << std::string(100'000, 'x');
  try {
    const recording::Recording recording{path};
    FAIL("it was taken for one");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::bad_input);
    CHECK(std::string{error.what()}.find("not an oomrec recording") != std::string::npos);
  }
  std::filesystem::remove(path);
  CHECK_THROWS_AS(recording::Recording{"/nowhere/at/all"}, Error);
  CHECK_THROWS_AS(recording::Recording{"/tmp"}, Error);
}

namespace {

// numpy.ones() by train.py, whose import was recorded, too; and a library's thread.
struct Frames {
  RecordingImage image;
  Frames() {
    const auto in = [&](const char* path) { return image.frames_of(path); };
    const auto python = in("/opt/oomrec-test/bin/python3.11");
    const auto umath = in("/opt/oomrec-test/_umath.so");
    const auto pool = in("/opt/oomrec-test/libpool.so");
    const std::uint64_t main = image.python("/p/train.py", "main", 10);
    const std::uint64_t ones = image.python("/p/numeric.py", "ones", 20);
    const std::uint64_t load = image.python("<frozen importlib._bootstrap>", "_load_unlocked", 690);
    const std::uint64_t numpy = image.python("/p/__init__.py", "<module>", 4);
    image.holder(image.stack({pool(9), python(1), main, python(2), ones, python(3), umath(1)}),
                 Space::heap, 503, 503, 503);
    image.holder(image.stack({pool(9), python(1), main, python(2), ones, umath(2), umath(3)}),
                 Space::heap, 101, 101, 101);
    image.holder(image.stack({python(1), main, load, numpy, load, umath(4)}), Space::heap, 41, 41,
                 41);
    image.holder(image.stack({python(1), load, umath(5)}), Space::heap, 31, 31, 31);
    image.holder(image.stack({pool(9), pool(1), pool(2)}), Space::heap, 23, 23, 23);
  }

  // Stacks as "function:line < caller:line …" or "module+offset", with their bytes, largest first.
  std::vector<std::pair<std::string, std::uint64_t>> rows(recording::Frames frames) {
    const recording::Recording recording{image.path()};
    recording::Locations locations{recording, {}};
    recording::Stacks stacks{recording, locations, frames};
    std::vector<std::pair<std::string, std::uint64_t>> result;
    for (const auto& row : recording::merged(recording.holders(), stacks, recording::At::end)) {
      std::string text;
      for (const recording::LocationId id : stacks.locations(stacks.reduced(row.stack))) {
        const recording::Location& location = locations[id];
        const std::string path = locations.module_path(location);
        text += text.empty() ? "" : " < ";
        text += location.kind == recording::Location::Kind::python
                    ? location.function
                    : path.substr(path.rfind('/') + 1) + "+" + std::to_string(location.offset);
      }
      result.emplace_back(text, row.bytes);
    }
    return result;
  }
};

}  // namespace

TEST_CASE("stacks are reduced to lines of Python, or to native functions") {
  Frames sample;
  using Rows = std::vector<std::pair<std::string, std::uint64_t>>;
  CHECK(sample.rows(recording::Frames::python) ==
        Rows{{"ones < main", 604},
             {"<module> < main", 41},
             {"_umath.so+5 < _load_unlocked < python3.11+1", 31},
             {"libpool.so+2 < libpool.so+1 < libpool.so+9", 23}});
  CHECK(sample.rows(recording::Frames::native) ==
        Rows{{"_umath.so+1 < python3.11+3 < python3.11+2 < python3.11+1 < libpool.so+9", 503},
             {"_umath.so+3 < _umath.so+2 < python3.11+2 < python3.11+1 < libpool.so+9", 101},
             {"_umath.so+4 < python3.11+1", 41},
             {"_umath.so+5 < python3.11+1", 31},
             {"libpool.so+2 < libpool.so+1 < libpool.so+9", 23}});
  CHECK(sample.rows(recording::Frames::both) ==
        Rows{{"_umath.so+1 < ones < main < libpool.so+9", 503},
             {"_umath.so+3 < _umath.so+2 < ones < main < libpool.so+9", 101},
             {"_umath.so+4 < _load_unlocked < <module> < _load_unlocked < main", 41},
             {"_umath.so+5 < _load_unlocked", 31},
             {"libpool.so+2 < libpool.so+1 < libpool.so+9", 23}});
}

TEST_CASE("an inverted tree knows the largest whole stack of each innermost line") {
  Frames sample;
  const recording::Recording recording{sample.image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations, recording::Frames::python};
  const recording::TreeNode root = recording::call_tree(
      recording::merged(recording.holders(), stacks, recording::At::end), stacks, locations, {});
  REQUIRE(root.children.size() == 4);
  CHECK(function_of(root.children[0], locations) == "ones");
  CHECK(stacks.locations(root.children[0].largest).size() == 7);
  CHECK(root.children[0].children[0].largest == 0);
}

TEST_CASE("statistics by native function name no line of Python") {
  Frames sample;
  const recording::Recording recording{sample.image.path()};
  recording::Locations locations{recording, {}};
  const auto largest = [&](recording::Frames frames) {
    recording::Stacks stacks{recording, locations, frames};
    return locations[recording::statistics_of(recording, stacks, locations).by_bytes[0].location];
  };
  CHECK(largest(recording::Frames::both).function == "ones");
  CHECK(largest(recording::Frames::python).function == "ones");
  CHECK(largest(recording::Frames::native).kind == recording::Location::Kind::native);
}

TEST_CASE("a holder whose published sum is below zero takes nothing from what is in memory") {
  constexpr std::uint64_t kMiB = 1 << 20;
  RecordingImage image;
  const auto holds = [&](const char* function, std::uint64_t bytes) {
    image.holder(image.stack({image.python("/p/train.py", function, 7)}), Space::map, bytes, 1, 1);
  };
  holds("freed", std::uint64_t{} - kMiB);  // by a thread that had not published what it allocated
  holds("filled", 100 * kMiB);
  image.look({{1, 0, kMiB, 0, 0, 0}, {2, 0, 40 * kMiB, 0, 0, 0}});
  const session::View view = image.session().view();
  CHECK(residency::held_in_memory(view, 100 * kMiB) == 60 * kMiB);
}
