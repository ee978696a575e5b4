// Stacks as people read them: what is worth a line.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/tools/recording_image.h"
#include "tools/print/shorten.h"
#include "tools/print/stack.h"
#include "tools/text.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::RecordingImage;

namespace {

std::vector<Interest> row(std::initializer_list<std::pair<int, Interest>> runs) {
  std::vector<Interest> result;
  for (const auto& [count, interest] : runs)
    result.insert(result.end(), static_cast<std::size_t>(count), interest);
  return result;
}

std::size_t lines_of(const std::vector<bool>& shown) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) lines += shown[i] || i == 0 || shown[i - 1];
  return lines;
}

struct Printed {
  RecordingImage image;
  std::string text(std::uint32_t node, bool full = false) {
    const Recording recording{image.path()};
    Places places{recording, {}};
    return stack_text(places.of_stack(node), places, {Terminal{STDIN_FILENO}, 0, full});
  }
};

}  // namespace

TEST_CASE("a stack that fits is shown whole, but for its machinery") {
  const auto shown = worth_a_line(row({{5, Interest::library}, {3, Interest::machinery}}), 14);
  CHECK(std::count(shown.begin(), shown.end(), true) == 5);
  CHECK_FALSE(shown[7]);
}

TEST_CASE("the program's own lines come before those of libraries") {
  const auto stack = row({{40, Interest::library},
                          {2, Interest::own},
                          {40, Interest::machinery},
                          {3, Interest::own},
                          {9, Interest::library}});
  const auto shown = worth_a_line(stack, 14);
  CHECK(lines_of(shown) <= 14);
  CHECK(shown[0]);
  for (const std::size_t own : {40u, 41u, 82u, 83u, 84u}) CHECK(shown[own]);
}

TEST_CASE("any stack keeps to its lines, and a line is never spent on a gap of one") {
  std::uint32_t random = 7;
  int rounds = 0;
  for (; rounds < 500; ++rounds) {
    std::vector<Interest> stack(random % 200);
    for (Interest& interest : stack) {
      random = random * 1664525 + 1013904223;
      interest = static_cast<Interest>(random >> 16 & 3 ? (random >> 20) % 3 : 0);
    }
    const auto shown = worth_a_line(stack, 14);
    REQUIRE(lines_of(shown) <= 14);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const bool gap_of_one =
          !shown[i] && (i == 0 || shown[i - 1]) && (i + 1 == shown.size() || shown[i + 1]);
      REQUIRE_FALSE(gap_of_one);
    }
  }
  CHECK(rounds == 500);
}

TEST_CASE("import system, interpreter and start are counted, packages go by their name") {
  Printed printed;
  RecordingImage& image = printed.image;
  const auto module = [&](const char* path) {
    return [&image, id = image.module(path, 0x1000)](std::uint64_t offset) {
      return session::native_frame(id, offset, false, false);
    };
  };
  const auto python = module("/usr/bin/python3.11");
  const auto umath = module("/v/lib/python3.11/site-packages/numpy/_umath.so");
  const auto load = image.python("<frozen importlib._bootstrap>", "_load_unlocked", 690);
  const auto own = image.python("/home/me/train.py", "main", 9);
  const auto numpy =
      image.python("/v/lib/python3.11/site-packages/numpy/__init__.py", "<module>", 4);
  const std::uint32_t node =
      image.stack({python(1), python(2), own, python(3), load, load, load, numpy, load, python(4),
                   umath(1), umath(2), umath(3), umath(4)});

  CHECK(printed.text(node) ==
        "_umath.so+0x4\n_umath.so+0x3\n_umath.so+0x2\n_umath.so+0x1\n"
        "… 2 frames of the interpreter\n"
        "numpy/__init__.py:4 <module>\n"
        "… 4 frames of the interpreter\n"
        "/home/me/train.py:9 main\n"
        "… 2 frames of the interpreter\n");
  const std::string full = printed.text(node, true);
  CHECK(std::count(full.begin(), full.end(), '\n') == 14);
}
