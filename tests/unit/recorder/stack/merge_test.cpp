#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "common/session/view.h"
#include "recorder/python/interpreter.h"
#include "recorder/stack/merge.h"
#include "tests/unit/sanitized.h"

using namespace oomrec;
using namespace oomrec::stack;

// Everything is in one module at 0x1000.
ModuleRef oomrec::stack::module_at(InHook, std::uint64_t) noexcept { return {1, 0x1000}; }

namespace {

NativeFrame native(std::uint64_t pc, std::uint64_t sp) { return {.pc = pc, .sp = sp}; }
PythonFrame python(std::uint32_t code, std::uint64_t marker) {
  return {session::python_frame(code, 2 * code), marker, 0, 0};
}
PythonFrame helper(std::uint64_t marker) { return {0, marker, 0, 0}; }

// Makes a chain from links, innermost first.
PythonStack stack_of(std::vector<PythonFrame>& links) {
  std::reverse(links.begin(), links.end());
  return {links.data(), static_cast<std::uint32_t>(links.size()), 0, false};
}

NativeStack stack_of(std::vector<NativeFrame>& frames, bool truncated = false) {
  return {frames.data(), static_cast<std::uint32_t>(frames.size()), 0, truncated, false};
}

// A stack as text, innermost first: "n" with a native frame's offset, "p" with a Python frame's
// code.
std::string text_of(const MergedFrame* frames, std::uint32_t count) {
  std::ostringstream out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t word = frames[i].word;
    const bool is_python = session::kind_of(word) == session::FrameKind::python;
    out << (i == 0 ? "" : " ") << (is_python ? "p" : "n") << std::hex
        << (is_python ? session::code_of(word) : session::offset_of(word));
  }
  return out.str();
}

std::string merged(std::vector<NativeFrame> natives, std::vector<PythonFrame> pythons,
                   bool native_truncated = false) {
  MergedFrame frames[64];
  const Merged result = merge(OutsideHooks::in_hook(), stack_of(natives, native_truncated),
                              stack_of(pythons), {}, frames, 64);
  return text_of(frames, result.count);
}

}  // namespace

TEST_CASE("frames of an eval call replace its C frame") {
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

TEST_CASE("without Python the native chain is unchanged") {
  CHECK(merged({native(0x1010, 100), native(0x1020, 200)}, {}) == "n10 n20");
  CHECK(merged({}, {}) == "");
}

TEST_CASE("Python frames whose native frame is missing are kept in order") {
  SUBCASE("the inner native frames were cut off") {
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

TEST_CASE("outermost frames that do not fit are dropped, which the result says") {
  std::vector<NativeFrame> natives = {native(0x1010, 100), native(0x1020, 200),
                                      native(0x1030, 300)};
  std::vector<PythonFrame> links = {python(7, 150), python(8, 250)};
  const PythonStack pythons = stack_of(links);
  MergedFrame frames[3];
  const InHook hook = OutsideHooks::in_hook();
  CHECK_FALSE(merge(hook, stack_of(natives), pythons, {}, frames, 3).cut);
  CHECK(merge(hook, stack_of(natives), pythons, {}, frames, 2).cut);
  CHECK(session::code_of(frames[1].word) == 8);
}

// Stacks that grow and shrink by calls like a program's, merged incrementally with the previous one
// and completely.
namespace {

class Program {
 public:
  explicit Program(bool by_function) : by_function_(by_function) {
    if (by_function) g_interpreter.eval_loop[0] = {0x2000, 0x3000};
  }
  ~Program() { g_interpreter.eval_loop[0] = {0, 0}; }

  void change() {
    for (unsigned left = random(8); left != 0 && !calls_.empty(); --left) calls_.pop_back();
    for (unsigned left = random(8); left != 0 && calls_.size() < 40; --left) {
      calls_.push_back(next_call());
    }
    if (!calls_.empty() && random(2) == 0) calls_.back().line = random(3);
  }

  // Merges in both ways and returns their difference, or nothing. Adds up the joined frames.
  std::string compare(unsigned long& joined) {
    std::vector<NativeFrame> natives;
    std::vector<PythonFrame> links;
    chains(natives, links);
    NativeStack native{natives.data(), static_cast<std::uint32_t>(natives.size()),
                       alike(natives, last_natives_, same_native), false, false};
    std::reverse(links.begin(), links.end());
    const PythonStack python{links.data(), static_cast<std::uint32_t>(links.size()),
                             alike_links(links), false};
    const InHook hook = OutsideHooks::in_hook();
    static MergedFrame whole[512], part[512];
    const Merged all = merge(hook, native, python, {}, whole, 512);
    std::string difference;
    if (memo_.joinable) {
      const Join join = join_of(memo_, native, python);
      const Merged inner = merge(hook, native, python, join, part, 512);
      if (inner.regular) {
        joined += join.frames;
        std::reverse_copy(memo_.frames, memo_.frames + join.frames, part + inner.count);
        const std::string got = text_of(part, inner.count + join.frames);
        if (got != text_of(whole, all.count)) {
          difference = got + " for " + text_of(whole, all.count);
        }
      }
    }
    memo_.joinable = all.regular;
    memo_.count = all.count;
    std::reverse_copy(whole, whole + all.count, memo_.frames);
    last_natives_ = natives;
    last_links_ = links;
    return difference;
  }

 private:
  // A C function, the eval loop with a first function, or a function in its caller's eval loop.
  enum class Kind : unsigned { c, eval, inlined };
  struct Call {
    Kind kind;
    std::uint32_t name;
    std::uint32_t line;
  };

  unsigned random(unsigned below) {
    state_ = state_ * 1664525 + 1013904223;
    return (state_ >> 16) % below;
  }

  Call next_call() {
    const bool in_eval = !calls_.empty() && calls_.back().kind != Kind::c;
    const unsigned kinds = by_function_ || !in_eval ? 2 : 3;
    return {static_cast<Kind>(random(kinds)), random(3), random(2)};
  }

  void chains(std::vector<NativeFrame>& natives, std::vector<PythonFrame>& links) const {
    std::uint64_t sp = 1'000'000;
    for (const Call& call : calls_) {
      const std::uint64_t outer = sp;
      if (call.kind != Kind::inlined) {
        sp -= 100;
        natives.push_back(native((call.kind == Kind::eval ? 0x2001 : 0x1001) + call.name, sp));
      }
      if (call.kind == Kind::c) continue;
      if (call.kind == Kind::eval) marker_ = by_function_ ? 0 : outer - 10;
      links.push_back(python(call.name + 3 * call.line, marker_));
      if (call.name == 2) links.push_back(helper(marker_));
    }
    std::reverse(natives.begin(), natives.end());
    std::reverse(links.begin(), links.end());
  }

  static bool same_native(const NativeFrame& a, const NativeFrame& b) {
    return a.pc == b.pc && a.sp == b.sp;
  }
  template <class Frames>
  static std::uint32_t alike(const Frames& a, const Frames& b, auto same) {
    const auto [end, other] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend(), same);
    return static_cast<std::uint32_t>(end - a.rbegin());
  }
  std::uint32_t alike_links(const std::vector<PythonFrame>& links) const {
    const auto same = [](const PythonFrame& a, const PythonFrame& b) {
      return a.word == b.word && a.marker == b.marker;
    };
    const auto [end, other] =
        std::mismatch(links.begin(), links.end(), last_links_.begin(), last_links_.end(), same);
    return static_cast<std::uint32_t>(end - links.begin());
  }

  const bool by_function_;
  unsigned state_ = 1;
  std::vector<Call> calls_;
  mutable std::uint64_t marker_ = 0;
  std::vector<NativeFrame> last_natives_;
  std::vector<PythonFrame> last_links_;
  MergedCache memo_{};
};

}  // namespace

TEST_CASE("a joined stack equals a complete merge") {
  for (const bool by_function : {false, true}) {
    CAPTURE(by_function);
    Program program(by_function);
    unsigned long joined = 0;
    unsigned different = 0;
    for (unsigned round = 0; round < rounds(100'000); ++round) {
      program.change();
      const std::string difference = program.compare(joined);
      if (!difference.empty() && ++different < 5) MESSAGE(difference);
    }
    CHECK(different == 0);
    CHECK(joined > 2 * rounds(100'000));
  }
}
