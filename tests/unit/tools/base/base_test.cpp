// Directories, thresholds, numbers and text.
#include "tools/base/directory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>

#include "tests/unit/scratch_directory.h"
#include "tools/base/hysteresis.h"
#include "tools/base/text.h"
#include "tools/processes/launch/library.h"

using namespace oomrec::tools;
using oomrec::tests::ScratchDirectory;

// --- Listing a directory

TEST_CASE("a directory is listed; a missing one and a file have no entries") {
  const ScratchDirectory directory;
  const std::filesystem::path path{directory.path()};
  std::ofstream{path / "file"} << "text";
  std::ofstream{path / ".hidden"} << "text";
  std::filesystem::create_directory(path / "folder");

  std::set<std::string> names;
  for (const std::filesystem::path& entry : entries_of(path)) names.insert(entry.filename());
  CHECK(names == std::set<std::string>{".hidden", "file", "folder"});
  CHECK(is_hidden(path / ".hidden"));
  CHECK_FALSE(is_hidden(path / "file"));

  CHECK(entries_of(path / "nothing").empty());
  CHECK(entries_of(path / "file").empty());
}

// --- Figures that hover at a threshold

TEST_CASE("a figure that hovers at its threshold falls once") {
  Hysteresis<std::string> shortages;
  const auto falls = [&](const char* key, double ratio) {
    return shortages.begins(key, ratio < 0.1, ratio >= 0.15);
  };
  CHECK(!falls("a", 0.11));
  CHECK(falls("a", 0.09));
  CHECK(!falls("a", 0.05));
  CHECK(!falls("a", 0.14));  // not far enough
  CHECK(!falls("a", 0.09));
  CHECK(falls("b", 0.09));  // another figure
  CHECK(!falls("a", 0.151));
  CHECK(falls("a", 0.0999));
  shortages.forget("a");
  CHECK(falls("a", 0.09));
}

// --- Numbers in text, and invalid ones

TEST_CASE("parse_number() accepts only a number that is the whole text") {
  CHECK(parse_number<unsigned>("17") == 17u);
  CHECK(parse_number<int>("-17") == -17);
  CHECK(parse_number<std::uint32_t>("d83d", 16) == 0xd83du);
  CHECK(parse_number<double>("0.25") == 0.25);
  for (const char* text : {"", " 17", "17 ", "+17", "-17", "17k", "0x11", "4294967296"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<std::uint32_t>(text));
  }
}

TEST_CASE("take_number() removes only the number at the beginning") {
  std::string_view text = "4,11295";
  CHECK(take_number<int>(text) == 4);
  CHECK(text == ",11295");
  CHECK_FALSE(take_number<int>(text));
  CHECK(text == ",11295");

  text = "99999999999";
  CHECK_FALSE(take_number<std::uint32_t>(text));
  CHECK(text == "99999999999");
}

// --- Sizes, safe and clipped text, suggestions

TEST_CASE("a size is printed in the largest unit of which it has at least one") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(1024) == "1.0 KiB");
  CHECK(size_text(412u << 20) == "412.0 MiB");
  CHECK(size_text((std::uint64_t{1} << 20) - 1) == "1.0 MiB");  // never "1024.0 KiB"
  CHECK(size_text(std::uint64_t{3} << 29) == "1.5 GiB");
  CHECK(size_text(~std::uint64_t{0}) == "16.0 EiB");
}

TEST_CASE("counts have commas, times are UTC") {
  CHECK(count_text(7) == "7");
  CHECK(count_text(123456) == "123,456");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(time_text(1'772'551'220'999'999'999) == "2026-03-03T15:20:20Z");
  CHECK(time_of_text("2026-03-03T15:20:20Z") == 1'772'551'220'000'000'000);
  CHECK(time_of_text("yesterday") == 0);
  CHECK(time_of_text("") == 0);
}

TEST_CASE("printable() removes everything that controls a terminal") {
  CHECK(printable("a\x1b[31mb\n") == "a?[31mb?");
  CHECK(printable("\xc2\x9b") == "?");  // CSI as one character
  CHECK(printable("a\xe2\x80\xae"
                  "b\xe2\x81\xa6"
                  "c\xe2\x80\xa8") == "a?b?c?");  // right-to-left override, line separator
  CHECK(printable("grün €") == "grün €");
  CHECK(printable("\xff\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("JSON escapes the same characters, except line breaks") {
  CHECK(with_controls_escaped("{\n\"grün €\": \"\x7f\xc2\x9b\xe2\x80\xae\"}\n") ==
        "{\n\"grün €\": \"\\u007f\\u009b\\u202e\"}\n");
}

TEST_CASE("text is clipped by characters, not by bytes") {
  CHECK(clip("grün", 4) == "grün");
  CHECK(clip("größer", 4) == "grö…");
  CHECK(clip_start("/usr/lib/größe", 6) == "…größe");
  CHECK(clip_start("abc", 3) == "abc");
}

TEST_CASE("a wrapped line stays within its columns") {
  CHECK(wrap("one two three", 9, 2) == "one two\n  three");
  CHECK(wrap("word", 2, 0) == "word");
}

TEST_CASE("a mistyped word finds the nearest one; a dissimilar word finds none") {
  const std::vector<std::string_view> commands = {"run", "show", "stats", "tree", "recover"};
  CHECK(nearest("rnu", commands) == "run");
  CHECK(nearest("shwo", commands) == "show");
  CHECK(nearest("sta", commands) == "stats");
  CHECK(nearest("recovre", commands) == "recover");
  CHECK(nearest("xyzzy", commands).empty());
}

TEST_CASE("the library is first in LD_PRELOAD, once, and the rest is unchanged") {
  CHECK(processes::preload_value("/o/liboomrec.so", nullptr) == "/o/liboomrec.so");
  CHECK(processes::preload_value("/o/liboomrec.so", "a.so:b.so") == "/o/liboomrec.so:a.so:b.so");
  const std::string again =
      processes::preload_value("/o/liboomrec.so", "a.so:/old/liboomrec.so b.so");
  CHECK(again.starts_with("/o/liboomrec.so:a.so"));
  CHECK(again.find("/old/") == std::string::npos);
  CHECK(again.ends_with("b.so"));
}
