// Which processes that end well have a row, and how many rows a dump directory keeps.
#include "tools/service/fleet/lives.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/store/lives.h"

namespace fs = std::filesystem;
using namespace oomrec::tools;

namespace {

std::string id_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

}  // namespace

TEST_CASE("a share of the ids is chosen, and the smaller share is part of the larger one") {
  for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{0x100000001b3}}) {
    int tenth = 0, half = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      const std::string id = id_of(i * step);
      const bool is_in_tenth = service::is_chosen(id, 0.1),
                 is_in_half = service::is_chosen(id, 0.5);
      CHECK((!is_in_tenth || is_in_half));
      tenth += is_in_tenth ? 1 : 0;
      half += is_in_half ? 1 : 0;
    }
    CHECK(tenth > 850);
    CHECK(tenth < 1150);
    CHECK(half > 4750);
    CHECK(half < 5250);
  }
  CHECK(service::is_chosen("ffffffffffffffff", 1));
  CHECK(service::is_chosen("0000000000000000", 1));
  CHECK(!service::is_chosen("0000000000000001", 0));
}

TEST_CASE("rows of lives are files of their own, the oldest make room") {
  const bundles::ScratchDirectory scratch;
  const fs::path dumps = scratch.path() / "dumps";
  const std::string line = R"({"kind":"life","day":"2026-11-30"})";
  CHECK(bundles::lives_in(dumps).empty());
  CHECK(bundles::write_life(dumps, id_of(7), line));
  CHECK(bundles::write_life(dumps, id_of(7), "another one of the same process"));
  REQUIRE(bundles::lives_in(dumps).size() == 1);
  const fs::path first = bundles::lives_in(dumps)[0];
  CHECK(bundles::is_life(first));
  CHECK(bundles::read_life(first) == line);
  CHECK(fs::status(first).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours{1});
  for (std::uint64_t i = 0; i < bundles::kMostLives; ++i)
    std::ofstream{dumps / "lives" / (id_of(100 + i) + ".json")} << line;
  CHECK(bundles::write_life(dumps, id_of(8), line));
  const std::vector<fs::path> left = bundles::lives_in(dumps);
  CHECK(left.size() == bundles::kMostLives);
  CHECK(!fs::exists(first));

  SUBCASE("what is no life is not read") {
    std::ofstream{dumps / "lives" / "a.json"} << R"({"kind":"death"})";
    CHECK(!bundles::read_life(dumps / "lives" / "a.json"));
    CHECK(!bundles::read_life(dumps / "lives" / "missing.json"));
  }
  SUBCASE("a link is not followed") {
    fs::remove_all(dumps / "lives");
    fs::create_directory(scratch.path() / "elsewhere");
    fs::create_directory_symlink(scratch.path() / "elsewhere", dumps / "lives");
    CHECK(!bundles::write_life(dumps, id_of(9), line));
    CHECK(fs::is_empty(scratch.path() / "elsewhere"));
  }
}
