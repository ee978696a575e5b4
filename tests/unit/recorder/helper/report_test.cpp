// The report on stderr: the line that names a holder, and when its figure is an estimate.
#include "recorder/helper/report.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "common/text/own_code.h"
#include "recorder/helper/demangle.h"
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

  // The line of the largest holder.
  std::string holder_line() const {
    char buffer[2048];
    text::Text text{buffer, sizeof buffer};
    const auto work = std::make_unique<Workspace>();
    Cause cause;
    cause.exported_name = names;
    helper::report_failure(OutsideHooks::in_hook(), text, view(), cause, {}, *work);
    const std::string report{text.view()};
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

TEST_CASE("a holder is everything that a line holds in one space") {
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
  CHECK(session.holder_line() == "about 7.0 MiB in 5 blocks, train.py:7 keep");

  SUBCASE("stacks without Python are never merged") {
    for (const std::uint64_t blocks : {1u, 2u})
      session.holder(session.stack({through(16)}), Space::heap, 6 << 20, blocks);
    CHECK(session.holder_line() == "about 7.0 MiB in 5 blocks, train.py:7 keep");
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

TEST_CASE("a C++ symbol is demangled without its parameters, or kept") {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"main", "main"},
      {"_Z10load_tablem", "load_table"},
      {"_ZN5train5Model4growEm", "train::Model::grow"},
      {"_ZNK5train5Model4sizeEv", "train::Model::size"},
      {"_ZN5train5ModelC2ERKS0_", "train::Model::Model"},
      {"_ZN5train5ModelD1Ev", "train::Model::~Model"},
      {"_ZN12_GLOBAL__N_14growEv", "(anonymous namespace)::grow"},
      {"_ZN5train5StackIiLi4EE4pushERKi", "train::Stack::push"},
      {"_ZN5train5StackISt6vectorIiSaIiEELb1EE4pushEv", "train::Stack::push"},
      {"_Z4fillISt6vectorIdSaIdEEEvRT_m", "fill"},
      {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move"},
      {"_ZNSt6vectorIdSaIdEE17_M_default_appendEm", "std::vector::_M_default_append"},
      {"_ZN5train5ModelclEv", "train::Model::operator()"},
      {"_ZN4load5tableB5cxx11Ev", "load::table"},
      {"_ZZ4mainENKUlvE_clEv", "_ZZ4mainENKUlvE_clEv"},
      {"_ZN3fooS1_E", "_ZN3fooS1_E"},
      {"_ZN99foo", "_ZN99foo"},
      {"_ZN99999999999999999999999foo", "_ZN99999999999999999999999foo"},
      {"_ZN3fooI", "_ZN3fooI"},
      {"_ZNE", "_ZNE"},
      {"_Z", "_Z"},
  };
  char buffer[128];
  for (const auto& row : kRows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(std::string{helper::demangled(symbol, buffer)} == row.second);
    // Cut anywhere, it is at most odd.
    for (std::size_t bytes = 0; bytes < std::string_view{symbol}.size(); ++bytes)
      CHECK(helper::demangled(std::string_view{symbol}.substr(0, bytes), buffer).size() <= 127);
  }
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
