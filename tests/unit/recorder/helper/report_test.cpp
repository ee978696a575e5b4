// The report on stderr: the line that names a holder, and when its figure is an estimate.
#include "recorder/helper/report.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "common/text/own_code.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::bundle;
using namespace oomrec::helper;
using session::Code;
using session::SessionImage;
using session::TableId;

namespace {

struct Reported : SessionImage {
  text::ExportedName names = nullptr;

  std::uint64_t python(std::string_view path, std::string_view function, std::uint32_t line) {
    const session::StringId file = string(path);
    const session::StringId name = string(function);
    std::uint32_t code = 0;
    add<Code>(TableId::codes, &code) = {file, name, line, 0};
    return session::python_frame(code, 0);
  }

  std::string report(std::uint32_t failure, const verdict::Verdict& verdict) const {
    char buffer[2048];
    text::Text text{buffer, sizeof buffer};
    const auto work = std::make_unique<Workspace>();
    Cause cause;
    cause.failure = failure;
    cause.exported_name = names;
    helper::report_failure(OutsideHooks::in_hook(), text, view(), cause, verdict, *work);
    return std::string{text.view()};
  }

  // The line of the failed request, with that stack.
  std::string request_line(std::uint32_t node) {
    std::uint32_t number = 0;
    session::Failure& failure = add<session::Failure>(TableId::failures, &number);
    failure.node = node;
    failure.bytes = 3 << 20;
    failure.api = static_cast<std::uint16_t>(Api::malloc);
    failure.soft_limit_bytes = 1 << 20;
    failure.flags = session::kFailureByRecorder;
    const verdict::Verdict verdict =
        verdict::verdict_of(view(), Trigger::allocation_failed, number);
    const std::string text = report(number, verdict);
    return text.substr(0, text.find('\n'));
  }

  // The line of the largest holder.
  std::string holder_line() const {
    const std::string report = this->report(0, {});
    const auto begin = report.find("largest holder: ");
    if (begin == std::string::npos) return {};
    return report.substr(begin + 16, report.find('\n', begin) - begin - 16);
  }
};

}  // namespace

TEST_CASE("the largest holder is named by its innermost line in the program") {
  Reported session;
  const auto own = session.python("/home/me/grow.py", "grow", 7);
  const auto ones =
      session.python("/opt/lib/python3.11/site-packages/numpy/_core/numeric.py", "ones", 225);
  const auto json = session.python("/usr/lib/python3.11/json/decoder.py", "decode", 340);
  session.holder(session.stack({own, json, ones}), Space::heap, 3 << 20, 2);
  CHECK(session.holder_line() == "3.0 MiB in 2 blocks, grow.py:7 grow");

  SUBCASE("without one, by the innermost line") {
    session.holder(session.stack({json, ones}), Space::heap, 4 << 20, 1);
    CHECK(session.holder_line() == "4.0 MiB in 1 block, numeric.py:225 ones");
  }
  SUBCASE("without any, by the module") {
    const auto module = session.module("/opt/libsound.so");
    session.holder(session.stack({session::native_frame(module, 64)}), Space::heap, 5 << 20, 1);
    CHECK(session.holder_line() == "5.0 MiB in 1 block from libsound.so");
  }
}

TEST_CASE("a holder is everything that a line holds on the host") {
  Reported session;
  const auto keep = session.python("/home/me/train.py", "keep", 7);
  const auto other = session.python("/home/me/train.py", "other", 9);
  const auto ones =
      session.python("/opt/lib/python3.11/site-packages/numpy/_core/numeric.py", "ones", 225);
  const auto python = session.module("/usr/bin/python3.11");
  const auto through = [&](std::uint64_t offset) { return session::native_frame(python, offset); };
  session.holder(session.stack({keep, through(16)}), Space::heap, 3 << 20, 3);
  session.holder(session.stack({keep, through(32), through(16)}), Space::heap, 4 << 20, 2,
                 session::kHolderEstimated);
  session.holder(session.stack({other, through(16)}), Space::heap, 5 << 20, 1);
  session.holder(session.stack({keep, ones}), Space::heap, 1 << 20, 1);
  session.holder(session.stack({keep, through(16)}), Space::map, 2 << 20, 1);
  const auto sound = session::native_frame(session.module("/opt/libsound.so"), 16);
  session.holder(session.stack({keep, sound}), Space::heap, 2 << 20, 1);
  CHECK(session.holder_line() == "about 9.0 MiB in 6 blocks, train.py:7 keep");

  SUBCASE("other stacks without Python are others") {
    for (const std::uint64_t offset : {16u, 32u})
      session.holder(session.stack({through(64), through(offset)}), Space::heap, 8 << 20, 1);
    CHECK(session.holder_line() == "about 9.0 MiB in 6 blocks, train.py:7 keep");
  }
}

TEST_CASE("a holder is everything that a function holds at all depths of a recursion") {
  Reported session;
  const auto module = session.python("/home/me/train.py", "<module>", 3);
  const auto keep = session.python("/home/me/train.py", "keep", 7);
  const auto even = session.python("/home/me/train.py", "even", 11);
  const auto odd = session.python("/home/me/train.py", "odd", 12);
  session.holder(session.stack({module, keep}), Space::heap, 3 << 20, 1);
  const auto hold = [&](std::vector<std::uint64_t> outer, std::vector<std::uint64_t> cycle,
                        std::uint64_t inner) {
    for (unsigned depth = 1; depth <= 8; ++depth) {
      outer.insert(outer.end(), cycle.begin(), cycle.end());
      std::vector<std::uint64_t> stack = outer;
      stack.push_back(inner);
      session.holder(session.stack(stack), Space::heap, 1 << 20, 1);
    }
  };
  SUBCASE("of Python") {
    hold({module}, {even}, keep);
    CHECK(session.holder_line() == "8.0 MiB in 8 blocks, train.py:7 keep");
  }
  SUBCASE("by way of another function") {
    hold({module}, {even, odd}, keep);
    CHECK(session.holder_line() == "8.0 MiB in 8 blocks, train.py:7 keep");
  }
  SUBCASE("of native code") {
    const auto sound = session.module("/opt/libsound.so");
    const auto at = [&](std::uint64_t offset) { return session::native_frame(sound, offset); };
    hold({at(16)}, {at(32)}, at(48));
    CHECK(session.holder_line() == "8.0 MiB in 8 blocks from libsound.so");
  }
  SUBCASE("not a function that others call in turn") {
    for (unsigned caller = 0; caller < 8; ++caller)
      session.holder(
          session.stack({module, even, session.python("/home/me/train.py", "block", 20 + caller),
                         even, keep}),
          Space::heap, 1 << 20, 1);
    CHECK(session.holder_line() == "3.0 MiB in 1 block, train.py:7 keep");
  }
}

namespace {

// A module's exported names by code offset.
bool name_of_sound(InHook, std::uint64_t start, std::uint64_t pc, char* name,
                   std::size_t capacity) noexcept {
  text::Text text{name, capacity};
  switch (pc - start) {
    case 100:
      text.add("_ZNSt6vectorIdSaIdEE17_M_default_appendEm");
      return true;
    case 300:
      text.add("_ZN5sound5Model4growEm");
      return true;
    case 400:
      text.add("main_loop");
      return true;
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("a line's small holders count, however many there are") {
  Reported session;
  const auto module = session.python("/home/me/tree.py", "<module>", 3);
  const auto left = session.python("/home/me/tree.py", "build", 7);
  const auto other = session.python("/home/me/tree.py", "other", 30);
  const auto native = session.module("/usr/bin/python3.11");
  const auto hold = [&](std::uint64_t line, std::uint32_t ways, std::uint64_t bytes) {
    for (std::uint32_t way = 0; way < ways; ++way)
      session.holder(session.stack({module, line, session::native_frame(native, 16 + way)}),
                     Space::heap, bytes, 2);
  };
  hold(left, 3000, 4096);
  SUBCASE("beside one that is larger than the largest 1,024 of these") {
    session.holder(session.stack({module, other}), Space::heap, 5 << 20, 1);
  }
  SUBCASE("beside others that are all larger") { hold(other, 1100, 4097); }
  CHECK(session.holder_line() == "11.7 MiB in 6,000 blocks, tree.py:7 build");
  SUBCASE("more than there is time for") {
    std::vector<std::uint64_t> deep(400, session::native_frame(native, 8));
    const std::uint32_t node = session.stack(deep);
    for (std::uint32_t way = 0; way < 3000; ++way) session.holder(node, Space::heap, 4095, 1);
    CHECK(session.holder_line().starts_with("at least 1"));
  }
}

TEST_CASE("a native holder is named by the innermost named function that is not a container's") {
  Reported session;
  session.names = name_of_sound;
  const auto module = session.module("/opt/libsound.so");
  const auto at = [&](std::uint64_t offset) {
    return session::native_frame(module, offset, {.exact = true});
  };
  std::uint64_t bytes = std::uint64_t{1} << 20;
  const auto name_of = [&](std::initializer_list<std::uint64_t> frames) {
    bytes += std::uint64_t{1} << 20;
    session.holder(session.stack(frames), Space::heap, bytes, 1);
    const std::string line = session.holder_line();
    return line.substr(line.find("block") + 5);
  };
  CHECK(name_of({at(400), at(300), at(200), at(100)}) == ", sound::Model::grow in libsound.so");
  CHECK(name_of({at(400), at(200)}) == ", main_loop in libsound.so");
  CHECK(name_of({at(200), at(100)}) == ", std::vector::_M_default_append in libsound.so");
  CHECK(name_of({at(200), at(500)}) == " from libsound.so");
}

TEST_CASE("the line of a failed request names the frame that asked") {
  Reported session;
  session.names = name_of_sound;
  const auto at = [](std::uint32_t module, std::uint64_t offset) {
    return session::native_frame(module, offset, {.exact = true});
  };
  const auto own = session.module("/opt/app/sound");
  const auto system = session.module("/usr/lib/libxml2.so.2");
  const auto libc = session.module("/usr/lib/libc.so.6");
  const std::string refused =
      " and was refused: that is more than the soft limit of 1.0 MiB (live 0 bytes)";
  const auto line = [&](std::initializer_list<std::uint64_t> frames) {
    const std::string text = session.request_line(session.stack(frames));
    const auto begin = text.find("asked");
    return text.substr(begin);
  };
  CHECK(line({at(own, 400), at(own, 300), at(own, 100), at(libc, 500)}) ==
        "asked malloc for 3.0 MiB at sound::Model::grow" + refused);
  // A library of the system asked on behalf of the program's function.
  CHECK(line({at(own, 400), at(system, 300)}) == "asked malloc for 3.0 MiB at main_loop" + refused);
  CHECK(line({at(own, 200), at(system, 300)}) ==
        "asked malloc for 3.0 MiB at sound::Model::grow" + refused);
  CHECK(line({at(own, 200)}) == "asked malloc for 3.0 MiB" + refused);
  CHECK(line({session.python("/home/me/train.py", "grow", 7), at(own, 400)}) ==
        "asked malloc for 3.0 MiB at train.py:7 grow" + refused);
}

TEST_CASE("only sampled figures are marked as estimates") {
  Reported session;
  const auto frame = session.python("a.py", "f", 3);
  session.holder(session.stack({frame}), Space::heap, 2 << 20, 4);
  CHECK(session.holder_line() == "2.0 MiB in 4 blocks, a.py:3 f");
  const auto sampled = session.python("a.py", "g", 5);
  session.holder(session.stack({sampled}), Space::heap, 3 << 20, 4096, session::kHolderEstimated);
  CHECK(session.holder_line() == "about 3.0 MiB in 4,096 blocks, a.py:5 g");
}

TEST_CASE("the owner of a Python file's code") {
  for (const char* own : {"/home/me/train.py", "train.py", "<string>", "<stdin>",
                          "<ipython-input-1>", "/srv/python3/app.py", "/usr/local/bin/tool"}) {
    CAPTURE(own);
    CHECK(text::is_programs_own(own));
  }
  for (const char* other :
       {"", "<frozen importlib._bootstrap>", "<__array_function__ internals>",
        "/v/lib/python3.8/site-packages/torch/nn.py", "/usr/lib/python3/dist-packages/apt/cache.py",
        "/usr/lib/python3.11/threading.py", "/usr/lib64/python3.9/json/__init__.py",
        "/opt/python/lib/python311.zip/abc.py"}) {
    CAPTURE(other);
    CHECK_FALSE(text::is_programs_own(other));
  }
}

TEST_CASE("the package of a Python file") {
  CHECK(text::package_of("/v/lib/python3.8/site-packages/torch/nn.py") == "torch");
  CHECK(text::package_of("/usr/lib/python3/dist-packages/apt/cache/a.py") == "apt");
  CHECK(text::package_of("/v/site-packages/six.py") == "six.py");
  for (const char* other : {"", "train.py", "/usr/lib/python3.11/threading.py", "<string>"})
    CHECK(text::package_of(other).empty());
}

TEST_CASE("the interpreter's modules include the standard library's extensions") {
  for (const char* path :
       {"/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
        "/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
        "/usr/lib64/python3.9/lib-dynload/_pickle.cpython-39-x86_64-linux-gnu.so",
        "/opt/conda/envs/a/lib/python3.12/lib-dynload/_sqlite3.cpython-312-x86_64-linux-gnu.so",
        "/home/me/.pyenv/versions/3.13.0/lib/python3.13/lib-dynload/"
        "_csv.cpython-313-x86_64-linux-gnu.so",
        "/home/me/.local/share/uv/python/cpython-3.13.1+freethreaded-linux-x86_64-gnu/lib/"
        "python3.13t/lib-dynload/_heapq.so",
        "/usr/bin/pypy3.10", "libpypy3.10-c.so"}) {
    CAPTURE(path);
    CHECK(text::is_interpreter(path));
  }
  for (const char* path :
       {"", "/", "/lib-dynload/x.so", "/home/me/lib-dynload/x.so", "/srv/python_magic.so",
        "/usr/lib/python3.11/x.so", "/usr/lib/python3/dist-packages/apt_pkg.so",
        "/v/lib/python3.11/site-packages/numpy/_umath.so",
        "/v/lib/python3.11/site-packages/pkg/lib-dynload/x.so", "/opt/app/sound",
        "/usr/lib/python3.11/lib-dynload"}) {
    CAPTURE(path);
    CHECK_FALSE(text::is_interpreter(path));
  }
}
