// Maps of code that was made at run time: lines, and the names that runtimes write into them.
#include "common/names/perf_map.h"

#include <cstdio>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace oomrec::names {
namespace {

struct Case {
  const char* name;
  const char* function;
  const char* file;
  std::uint32_t line;
  bool is_glue = false;
};

// As Node.js 18, 20 and 24, OpenJDK 17 and 21, CPython 3.12 to 3.14, PHP 8 and .NET write them.
constexpr Case kCases[] = {
    {"JS:~processImage /srv/leak.js:3:22", "processImage", "/srv/leak.js", 3},
    {"JS:^handler /srv/my app/leak.js:4:17", "handler", "/srv/my app/leak.js", 4},
    {"JS:*'handler /srv/leak.js:4:17", "handler", "/srv/leak.js", 4},
    {"JS:*get memoryUsage node:internal/process/per_thread:162:23", "get memoryUsage",
     "node:internal/process/per_thread", 162},
    {"LazyCompile:+render file:///srv/page.mjs:12:5", "render", "/srv/page.mjs", 12},
    {"Eval:~ /srv/leak.js:1:1", "", "/srv/leak.js", 1},
    {"JS:~ [eval]-wrapper:6:24", "", "[eval]-wrapper", 6},
    {"JS:~main bundle.js:9:1", "main", "bundle.js", 9},
    {"JS:~anonymous", "anonymous", "", 0},
    {"Builtin:ArrayPrototypePush", "Builtin:ArrayPrototypePush", "", 0, true},
    {"BytecodeHandler:Ldar", "BytecodeHandler:Ldar", "", 0, true},
    {"RegExp:^a+$", "RegExp:^a+$", "", 0, true},
    {"Interpreter", "Interpreter", "", 0, true},
    {"py::leak:/srv/leak.py", "py::leak:/srv/leak.py", "", 0, true},
    {"void Leak.main(java.lang.String[])", "Leak.main", "", 0},
    {"long jdk.internal.misc.Unsafe.allocateMemory0(long)",
     "jdk.internal.misc.Unsafe.allocateMemory0", "", 0},
    {"void java.nio.DirectByteBuffer.<init>(int, java.lang.Object)",
     "java.nio.DirectByteBuffer.<init>", "", 0},
    {"StubRoutines (1)", "StubRoutines (1)", "", 0, true},
    {"I2C/C2I adapters", "I2C/C2I adapters", "", 0, true},
    {"no(parameters", "no(parameters", "", 0},
    {"()", "()", "", 0},
    {"void [app] Cache::Put(int32)[Tier0]", "void [app] Cache::Put(int32)[Tier0]", "", 0},
    {"JIT$Cache::put", "Cache::put", "", 0},
    {"JS:~", "", "", 0},
    {"JS:", "", "", 0},
    {"JS:~f :", "f :", "", 0},
};

std::vector<std::string> lines_of(const std::string& text, std::size_t buffer_bytes) {
  std::FILE* const temporary = std::tmpfile();
  std::fwrite(text.data(), 1, text.size(), temporary);
  std::fflush(temporary);
  const std::string path = "/proc/self/fd/" + std::to_string(fileno(temporary));
  const system::File file = system::File::open(path.c_str(), 0);
  std::vector<char> buffer(buffer_bytes);
  std::vector<std::string> found;
  for_each_map_line(file, 0, buffer, [&](const MapLine& line, std::uint64_t at) {
    CHECK(text.substr(at, line.name.size()) == line.name);
    found.push_back(std::to_string(line.start) + "+" + std::to_string(line.bytes) + " " +
                    std::string{line.name});
    return true;
  });
  std::fclose(temporary);
  return found;
}

}  // namespace

TEST_CASE("names of runtimes are taken apart") {
  for (const Case& one : kCases) {
    CAPTURE(one.name);
    const GeneratedName found = generated_name(one.name);
    CHECK(found.function == one.function);
    CHECK(found.file == one.file);
    CHECK(found.line == one.line);
    CHECK(found.is_glue == one.is_glue);
  }
}

TEST_CASE("lines that are none are left out, whatever the buffer") {
  const std::string text =
      "7f00 20 one\n"
      "0x7f20 0x10 two words\n"
      "\n"
      "7f30\n"
      "7f30 10\n"
      "7f30 10 \n"
      "7f30 0 empty\n"
      "ffffffffffffffff 10 beyond the end\n"
      "10000000000000000 10 too large\n"
      "-1 10 negative\n"
      "text 10 text\n" +
      std::string(300, 'x') +
      "\n"
      "7f40 10 three\n"
      "7f50 10 cut sh";
  const std::vector<std::string> expected = {"32512+32 one", "32544+16 two words",
                                             "32576+16 three"};
  for (const std::size_t bytes : {4096, 64, 48}) CHECK(lines_of(text, bytes) == expected);
  CHECK(lines_of("", 64).empty());
}

TEST_CASE("a map that is not the process' is not opened") {
  CHECK_FALSE(open_perf_map("", 0x7fff'fff0, 0).is_open());
  CHECK_FALSE(open_perf_map(std::string(600, 'x').c_str(), 1, 0).is_open());
}

}  // namespace oomrec::names
