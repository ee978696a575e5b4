// Names of functions, and positions of Python's lines, as a session has them.
#include "common/session/functions.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/python_lines.h"
#include "tests/unit/common/session/python_line_fixtures.h"

using namespace oomrec;
using oomrec::session::kNoInstruction;
using oomrec::session::python_line;

// --- The rows of functions: what the rest of oomrec derives from their traits

TEST_CASE("a function is found by its name, and has it only once") {
  std::set<std::string_view> names;
  for (const Function& function : kFunctions) {
    if (function.name.empty()) continue;
    CHECK(names.insert(function.name).second);
    REQUIRE(api_named(function.name));
    CHECK(name_of(*api_named(function.name)) == function.name);
  }
  CHECK(names.size() > 150);
  CHECK_FALSE(api_named(""));
  CHECK_FALSE(api_named("cuMemAlloc_v2"));
}

TEST_CASE("a number of no function changes nothing, and cannot fail") {
  for (const Api api :
       {Api::end_of_host, Api::before_hip, Api::end_of_hip, static_cast<Api>(65535)}) {
    CHECK(name_of(api) == "unknown");
    CHECK(function_of(api).traits == 0);
    CHECK(space_of(api) == Space::heap);
  }
}

TEST_CASE("what only releases or queries cannot fail for lack of memory") {
  for (const Function& function : kFunctions) {
    const auto names = [&](std::string_view part) {
      return function.name.find(part) != function.name.npos;
    };
    if (!function.name.starts_with("cu") && !function.name.starts_with("hip")) continue;
    const bool may_fail = function.has(kFails);
    CHECK_MESSAGE(function.has(kInjectable) == may_fail, function.name);
    if (names("Free") || names("Destroy") || names("Release") || names("Unmap"))
      CHECK_MESSAGE(!may_fail, function.name);
    if (names("MemAlloc") || names("Create") || names("Malloc"))
      CHECK_MESSAGE(may_fail, function.name);
  }
  for (const Api api : {Api::free, Api::operator_delete, Api::munmap, Api::shmdt, Api::none})
    CHECK_FALSE(function_of(api).has(kFails | kInjectable));
  for (const Api api : {Api::malloc, Api::mmap, Api::mlock, Api::dlopen, Api::posix_spawn})
    CHECK(function_of(api).has(kFails));
}

TEST_CASE("the functions that allocate or free, by all their names") {
  std::set<std::string_view> heap, all;
  for (const Function& function : kMemoryFunctions) {
    all.insert(function.name);
    if (is_heap_function(function.name)) heap.insert(function.name);
  }
  CHECK(heap == std::set<std::string_view>{"malloc",
                                           "calloc",
                                           "realloc",
                                           "reallocarray",
                                           "free",
                                           "cfree",
                                           "memalign",
                                           "aligned_alloc",
                                           "posix_memalign",
                                           "valloc",
                                           "pvalloc",
                                           "free_sized",
                                           "free_aligned_sized",
                                           "dallocx",
                                           "sdallocx",
                                           "mallocx",
                                           "__libc_malloc",
                                           "__libc_calloc",
                                           "__libc_realloc",
                                           "__libc_free",
                                           "__libc_memalign",
                                           "__libc_valloc",
                                           "__libc_pvalloc"});
  CHECK(all.contains("mmap64"));
  CHECK(all.contains("shmdt"));
  CHECK_FALSE(all.contains("operator_new"));  // its exported names are others
  CHECK_FALSE(is_heap_function("mmap"));
}

namespace {

std::uint32_t line_of(const Fixture& code, std::uint32_t instruction) {
  return session::python_line(code.version_hex, code.first_line, code.table, instruction);
}

}  // namespace

TEST_CASE("every instruction has the same line as in its interpreter") {
  std::size_t instructions = 0;
  for (const Fixture& code : kFixtures) {
    CAPTURE(code.label);
    CAPTURE(code.version_hex);
    for (std::size_t i = 0; i < code.runs.size(); ++i) {
      const std::uint32_t end =
          i + 1 < code.runs.size() ? code.runs[i + 1].instruction : code.code_bytes;
      const int line = code.runs[i].line;
      const std::uint32_t expected = line < 0 ? code.first_line : static_cast<std::uint32_t>(line);
      for (std::uint32_t at = code.runs[i].instruction; at < end; at += 2, ++instructions) {
        CAPTURE(at);
        CHECK(line_of(code, at) == expected);
      }
    }
  }
  CHECK(kFixtures.size() > 50);
  CHECK(instructions > 3000);
}

TEST_CASE("a frame that has not started is at its function's first line") {
  for (const Fixture& code : kFixtures)
    CHECK(line_of(code, session::kNoInstruction) == code.first_line);
}

TEST_CASE("a cut or forged table yields a line and is not read beyond its end") {
  std::mt19937 random(20261121);
  std::size_t rounds = 0;
  for (const Fixture& code : kFixtures) {
    for (std::size_t bytes = 0; bytes <= std::min<std::size_t>(code.table.size(), 64); ++bytes) {
      std::vector<char> table(code.table.begin(), code.table.begin() + static_cast<long>(bytes));
      for (int flips = 0; flips < 4; ++flips, ++rounds) {
        const std::string_view view(table.data(), table.size());
        CHECK(session::python_line(code.version_hex, code.first_line, view, code.code_bytes / 2) >
              0);
        if (!table.empty()) table[random() % table.size()] = static_cast<char>(random());
      }
    }
  }
  CHECK(rounds > 1000);
}

TEST_CASE("an empty line table yields the first line") {
  for (const std::uint32_t version : {0x030800f0u, 0x030a00f0u, 0x030b00f0u, 0x030f00f0u}) {
    CHECK(session::python_line(version, 7, {}, 10) == 7);
  }
}
