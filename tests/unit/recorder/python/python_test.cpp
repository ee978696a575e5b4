// Offsets in interpreters that are found, and tables of lines.
#include "recorder/python/offsets.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "recorder/python/line_table.h"
#include "tests/unit/common/session/python_line_fixtures.h"

using namespace oomrec::stack;
using namespace oomrec;
using stack::lines_of;

namespace {

// A `_PyRuntime` as in 3.13.0: the fields that are read, the rest zero.
struct Published {
  std::array<std::byte, 2048> bytes{};

  explicit Published(std::uint64_t version_hex, std::uint64_t free_threaded = 0) {
    std::memcpy(bytes.data(), "xdebugpy", 8);
    put(8, version_hex);
    put(16, free_threaded);
  }
  void put(std::size_t position, std::uint64_t value) {
    std::memcpy(bytes.data() + position, &value, sizeof value);
  }
};

Published published_3_13() {
  Published p(0x030d00f0);
  const std::pair<std::size_t, std::uint64_t> fields[] = {
      {184, 72}, {192, 152}, {216, 32},  {232, 8},   {240, 0},  {248, 56},
      {264, 70}, {280, 112}, {296, 128}, {304, 136}, {312, 68}, {344, 200},
      {360, 8},  {520, 16},  {528, 32},  {544, 32},  {552, 16}, {560, 40}};
  for (const auto& [position, value] : fields) p.put(position, value);
  return p;
}

std::string problem_of(std::uint32_t version_hex, const std::byte* runtime = nullptr) {
  PythonOffsets offsets;
  const char* problem = nullptr;
  return find_python_offsets(version_hex, runtime, {}, offsets, problem) ? "" : problem;
}

}  // namespace

TEST_CASE("a version is read as PY_VERSION_HEX spells it") {
  CHECK(parse_python_version("3.8.18 (default, Jan 1 2024) \n[GCC 12.2.0]") == 0x030812f0);
  CHECK(parse_python_version("3.10.0rc2 (tags/v3.10.0rc2)") == 0x030a00c2);
  CHECK(parse_python_version("3.15.0a4+ (heads/main)") == 0x030f00a4);
  CHECK(parse_python_version("3.9.2b1") == 0x030902b1);
  CHECK(parse_python_version("3.9.18+ (heads/3.9)") == 0x030912f0);
  for (const char* text : {"", "3", "3.9", "3.x.1", "python 3.9.1", "3.99999.1"}) {
    CHECK(parse_python_version(text) == 0);
  }
}

TEST_CASE("untested versions are rejected with a reason") {
  CHECK(problem_of(0x030812f0) == "");
  CHECK(problem_of(0x030c01f0) == "");
  CHECK(problem_of(0x030711f0) == "this Python is older than 3.8");
  CHECK(problem_of(0x020712f0) == "this Python is older than 3.8");
  CHECK(problem_of(0) == "this Python is older than 3.8");
  CHECK(problem_of(0x030c00b1) == "this Python is a pre-release");
  const Published unknown(0x031000f0);
  CHECK(problem_of(0x031000f0, unknown.bytes.data()) ==
        "this Python is newer than this oomrec knows");
  CHECK(problem_of(0x031000f0) == "this Python does not export _PyRuntime");
  CHECK(problem_of(0x030d00f0) == "this Python does not export _PyRuntime");
}

TEST_CASE("published offsets are used for versions that have them") {
  const Published runtime = published_3_13();
  PythonOffsets offsets;
  const char* problem = nullptr;

  REQUIRE(find_python_offsets(0x030d00f0, runtime.bytes.data(), {}, offsets, problem));

  CHECK(offsets.chain == FrameChain::shim);
  CHECK(offsets.thread_frame == 72);
  CHECK(offsets.thread_id == 152);
  CHECK(offsets.thread_status == 32);
  CHECK(offsets.frame_instruction == 56);
  CHECK(offsets.code_name == 128);
  CHECK(offsets.code_bytecode == 200);
  CHECK(offsets.code_version == 92);
  CHECK(offsets.text_wide_data == 56);
  CHECK(offsets.frame_tlbc_index == PythonOffsets::kAbsent);
}

namespace {

// What real interpreters publish from byte 24 on, and what their types say.
struct Sample {
  std::uint32_t version_hex;
  TypeSizes sizes;
  std::vector<std::uint64_t> words;
};
const Sample kSamples[] = {
    {0x030d00f0,
     {200, 33, 64},
     {283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0,   7768,
      7760,   304, 0,   8,      16,   72,   152,  160,  232,  32,   80,   8,  0,    56,  72,
      70,     208, 112, 120,    128,  136,  68,   52,   96,   104,  200,  16, 8,    416, 24,
      88,     168, 32,  24,     16,   40,   24,   16,   48,   32,   40,   24, 16,   32,  16,
      24,     40,  16,  32,     64,   32,   16,   40,   240,  200,  1}},
    {0x030e0af0,
     {208, 33, 64},
     {316616, 784,  808,  225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16,  7784, 0,
      7800,   7792, 7992, 0,      832,  0,    8,    16,   72,   152,  160,  232,  32,  88,   8,
      0,      56,   80,   74,     64,   0,    216,  112,  120,  128,  136,  68,   52,  96,   104,
      208,    0,    16,   8,      416,  24,   88,   168,  40,   32,   16,   40,   24,  16,   200,
      24,     40,   32,   48,     32,   40,   24,   16,   32,   16,   24,   40,   16,  32,   64,
      32,     16,   40,   264,    192,  160,  24,   72,   67,   0,    8,    24,   304, 8076, 0}}};

Published published(const Sample& sample, std::uint32_t version_hex) {
  Published runtime(version_hex);
  for (std::size_t i = 0; i < sample.words.size(); ++i) runtime.put(24 + 8 * i, sample.words[i]);
  return runtime;
}

}  // namespace

TEST_CASE("a version that is in no table is read as one in a table with the same layout") {
  for (const Sample& sample : kSamples) {
    CAPTURE(sample.version_hex);
    PythonOffsets known, found;
    const char* problem = nullptr;
    const Published own = published(sample, sample.version_hex);
    REQUIRE(
        find_python_offsets(sample.version_hex, own.bytes.data(), sample.sizes, known, problem));
    constexpr std::uint32_t kNext = 0x031100f0;
    CHECK(is_known_version(sample.version_hex));
    CHECK_FALSE(is_known_version(kNext));
    const Published next = published(sample, kNext);
    REQUIRE(find_python_offsets(kNext, next.bytes.data(), sample.sizes, found, problem));
    // Where the next version has the status is not certain: nobody is said to wait.
    CHECK(found.thread_status == PythonOffsets::kAbsent);
    found.thread_status = known.thread_status;
    CHECK(std::memcmp(&known, &found, sizeof known) == 0);
  }
}

TEST_CASE("parts that a new version has moved are found; without one of them it is rejected") {
  Sample sample = kSamples[1];
  constexpr std::uint32_t kNext = 0x031100f0;
  PythonOffsets before, after;
  const char* problem = nullptr;
  const Published first = published(sample, kNext);
  REQUIRE(find_python_offsets(kNext, first.bytes.data(), sample.sizes, before, problem));
  sample.words.insert(sample.words.begin() + 5, {4096, 40, 48});  // at the interpreter's state
  sample.words.insert(sample.words.end() - 20, {72, 8, 24});
  const Published second = published(sample, kNext);
  REQUIRE(find_python_offsets(kNext, second.bytes.data(), sample.sizes, after, problem));
  CHECK(std::memcmp(&before, &after, sizeof before) == 0);

  SUBCASE("code objects of another size") { sample.sizes.code += 8; }
  SUBCASE("other bytes objects") { sample.sizes.bytes += 8; }
  SUBCASE("other texts") { sample.sizes.text += 8; }
  SUBCASE("types that are not exported") { sample.sizes = {}; }
  const Published third = published(sample, kNext);
  CHECK_FALSE(find_python_offsets(kNext, third.bytes.data(), sample.sizes, after, problem));
}

TEST_CASE("published offsets of another build are rejected") {
  Published runtime = published_3_13();
  SUBCASE("no cookie") { runtime.put(0, 0); }
  SUBCASE("another version") { runtime.put(8, 0x030d01f0); }
  SUBCASE("an absurd offset") { runtime.put(304, 1 << 20); }
  CHECK(problem_of(0x030d00f0, runtime.bytes.data()) != "");
}

TEST_CASE("a free-threaded 3.14 keeps bytecode by thread and moves the bits of a text's state") {
  Published runtime(0x030e00f0, 1);
  runtime.put(304, 72);
  runtime.put(392, 224);
  PythonOffsets offsets;
  const char* problem = nullptr;

  REQUIRE(find_python_offsets(0x030e00f0, runtime.bytes.data(), {}, offsets, problem));

  CHECK(offsets.frame_tlbc_index == 72);
  CHECK(offsets.code_tlbc == 224);
  CHECK(offsets.text_ascii_mask == 0x1000);
  CHECK(offsets.object_refcount == PythonOffsets::kAbsent);
}

namespace {

bool has_columns(const Fixture& code) { return code.version_hex >= session::kLocationTables; }

}  // namespace

TEST_CASE("a table without columns has the line of each instruction, in less space") {
  std::size_t before = 0, after = 0;
  for (const Fixture& code : kFixtures) {
    CAPTURE(code.label);
    CAPTURE(code.version_hex);
    std::array<char, 16384> buffer;
    const std::string_view lines = lines_of(code.version_hex, code.table, buffer);
    for (std::uint32_t at = 0; at < code.code_bytes + 4; at += 2) {
      CAPTURE(at);
      REQUIRE(session::python_line(code.version_hex, code.first_line, lines, at) ==
              session::python_line(code.version_hex, code.first_line, code.table, at));
    }
    if (!has_columns(code)) {
      CHECK(lines.data() == code.table.data());
      continue;
    }
    before += code.table.size();
    after += lines.size();
    // A table that has none is as small as possible.
    std::array<char, 16384> again;
    CHECK(lines_of(code.version_hex, lines, again) == lines);
  }
  CHECK(before > 1000);
  CHECK(after < before / 2);
}

TEST_CASE("a table that does not fit stays as it is") {
  for (const Fixture& code : kFixtures) {
    std::array<char, 3> buffer{};
    const std::string_view lines = lines_of(code.version_hex, code.table, buffer);
    CHECK((lines == code.table || lines.size() <= buffer.size()));
  }
}

TEST_CASE("of a cut or forged table, what is valid stays") {
  for (const Fixture& code : kFixtures) {
    for (std::size_t bytes = 0; bytes < std::min<std::size_t>(code.table.size(), 40); ++bytes) {
      std::string table{code.table.substr(0, bytes)};
      if (bytes % 3 == 2) table[bytes / 2] = static_cast<char>(bytes * 37);
      std::array<char, 16384> buffer;
      const std::string_view lines = lines_of(code.version_hex, table, buffer);
      for (std::uint32_t at = 0; at < code.code_bytes; at += 2)
        REQUIRE(session::python_line(code.version_hex, code.first_line, lines, at) ==
                session::python_line(code.version_hex, code.first_line, table, at));
    }
  }
}
