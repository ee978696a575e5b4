#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "recorder/session/view.h"
#include "recorder/stack/python.h"

using namespace oomrec;
using namespace oomrec::stack;

// Everything is in one module at 0x1000.
ModuleRef oomrec::stack::module_at(InHook, std::uint64_t) noexcept { return {1, 0x1000}; }

namespace {

NativeFrame native(std::uint64_t pc, std::uint64_t sp) { return {pc, sp, false, false, 0, {}}; }
PythonLink python(std::uint32_t code, std::uint64_t marker) {
  PythonLink link{};
  link.marker = marker;
  link.word = session::python_frame(code, 2 * code);
  return link;
}
PythonLink helper(std::uint64_t marker) {
  PythonLink link{};
  link.marker = marker;
  return link;
}

// Of links that are given innermost first.
PythonStack stack_of(std::vector<PythonLink>& links) {
  std::reverse(links.begin(), links.end());
  return {links.data(), static_cast<std::uint32_t>(links.size()), 0, false};
}

// "n" and the offset of a native frame, "p" and the code of a Python frame, innermost first.
std::string merged(std::vector<NativeFrame> natives, std::vector<PythonLink> pythons,
                   bool native_truncated = false) {
  std::uint64_t words[64];
  const std::uint32_t count =
      merge(OutsideHooks::in_hook(), natives.data(), static_cast<std::uint32_t>(natives.size()),
            native_truncated, stack_of(pythons), words, 64);
  std::ostringstream out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_python = session::kind_of(words[i]) == session::FrameKind::python;
    out << (i == 0 ? "" : " ") << (is_python ? "p" : "n") << std::hex
        << (is_python ? session::code_of(words[i]) : session::offset_of(words[i]));
  }
  return out.str();
}

}  // namespace

TEST_CASE("frames of an eval call stand where its C frame stood") {
  const std::vector<NativeFrame> natives = {native(0x1010, 100), native(0x1020, 200),
                                            native(0x1030, 300), native(0x1040, 400)};
  SUBCASE("one call of three functions (3.11 on)") {
    CHECK(merged(natives, {python(7, 250), python(8, 250), python(9, 250)}) ==
          "n10 p7 p8 p9 n30 n40");
  }
  SUBCASE("two calls with native frames between (a callback)") {
    CHECK(merged(natives, {python(7, 120), python(8, 320), python(9, 320)}) == "p7 n20 p8 p9 n40");
  }
  SUBCASE("each call one function (3.10)") {
    CHECK(merged(natives, {python(7, 120), python(8, 210), python(9, 399)}) == "p7 p8 p9 n40");
  }
  SUBCASE("a C frame without Python frames stays (a shim on top while __del__ runs)") {
    CHECK(merged(natives, {helper(110), python(8, 310), helper(310)}) == "n10 n20 p8 n40");
  }
  SUBCASE("the outermost native frame") {
    CHECK(merged(natives, {python(9, 4000)}) == "n10 n20 n30 p9");
  }
}

TEST_CASE("without Python the native chain is as it was") {
  CHECK(merged({native(0x1010, 100), native(0x1020, 200)}, {}) == "n10 n20");
  CHECK(merged({}, {}) == "");
}

TEST_CASE("Python frames whose native frame is missing are kept in order") {
  SUBCASE("native frames were cut off further in") {
    CHECK(merged({native(0x1010, 100), native(0x1020, 200)}, {python(7, 120), python(8, 900)},
                 true) == "p7 n20 p8");
  }
  SUBCASE("no native frame at all") {
    CHECK(merged({}, {python(7, 120), python(8, 120)}, true) == "p7 p8");
  }
  SUBCASE("a marker further in than any frame") {
    CHECK(merged({native(0x1010, 100), native(0x1020, 200)}, {python(7, 50)}) == "p7 n10 n20");
  }
}

TEST_CASE("stack pointers that jump (a handler's own stack) do not confuse the order") {
  CHECK(merged({native(0x1010, 9000), native(0x1020, 9100), native(0x1030, 100),
                native(0x1040, 200), native(0x1050, 300)},
               {python(7, 9050), python(8, 250)}) == "p7 n20 n30 p8 n50");
}

TEST_CASE("up to 3.9 each native frame of the eval loop is one Python frame") {
  g_interpreter.eval_loop[0] = {0x2000, 0x3000};
  const std::vector<NativeFrame> natives = {native(0x1010, 100), native(0x2050, 200),
                                            native(0x1030, 300), native(0x2100, 400),
                                            native(0x2000, 500), native(0x3000, 600)};
  CHECK(merged(natives, {python(7, 0), python(8, 0), python(9, 0)}) == "n10 p7 n30 p8 n1000 p9");
  SUBCASE("more of them than native frames") {
    CHECK(merged({native(0x1010, 100), native(0x2050, 200)}, {python(7, 0), python(8, 0)}, true) ==
          "n10 p7 p8");
  }
  g_interpreter.eval_loop[0] = {0, 0};
}

TEST_CASE("what does not fit is the outermost, and the caller is told") {
  NativeFrame natives[] = {native(0x1010, 100), native(0x1020, 200), native(0x1030, 300)};
  std::vector<PythonLink> links = {python(7, 150), python(8, 250)};
  const PythonStack pythons = stack_of(links);
  std::uint64_t words[3];
  bool cut = false;
  CHECK(merge(OutsideHooks::in_hook(), natives, 3, false, pythons, words, 3, &cut) == 3);
  CHECK_FALSE(cut);
  CHECK(merge(OutsideHooks::in_hook(), natives, 3, false, pythons, words, 2, &cut) == 2);
  CHECK(cut);
  CHECK(session::code_of(words[1]) == 8);
}
