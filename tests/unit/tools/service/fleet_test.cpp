// The lifetime of series, and rows of processes that end well.
#include "tools/service/fleet/process_registry.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/tools/recording_image.h"
#include "tools/base/directory.h"
#include "tools/bundles/store/lives.h"
#include "tools/service/fleet/lives.h"

namespace fs = std::filesystem;
using namespace oomrec::tools;
using namespace oomrec;
using namespace std::chrono_literals;
using tests::RecordingImage;

// --- The lifetime of series

namespace {

// A recorded process of this test's own program and pid, with a clock that the test advances.
class World {
 public:
  World() {
    image_.session().header().failures_total = 3;
    tools::bundles::Session session;
    session.path = image_.path();
    session.alive = true;
    registry_.on_found(session, false);
  }

  void end_process() {
    image_.session().mark(RecordingImage::kHook, session::State::exited, 0);
    registry_.on_gone(image_.path(), nullptr);
  }
  void remove_recording() { std::filesystem::remove(image_.path()); }
  void wait(std::chrono::milliseconds time) { now_ += time; }

  // The figures of the process and of its program.
  struct Page {
    const service::RowFigures* process = nullptr;
    const service::RowFigures* program = nullptr;
    std::map<service::SeriesRow, service::RowFigures> rows;
  };
  std::unique_ptr<Page> page() {
    registry_.sample();
    auto page = std::make_unique<Page>();
    page->rows = registry_.rows();
    for (const auto& [row, figures] : page->rows)
      (row.pid ? page->process : page->program) = &figures;
    REQUIRE(page->rows.size() <= 2);
    return page;
  }

 private:
  service::PollClient::Clock::time_point now_{1000h};
  RecordingImage image_;
  service::ProcessRegistry registry_{{}, [this] { return now_; }};
};

std::uint64_t deaths_of(const service::RowFigures& figures) {
  return figures.counts.deaths[static_cast<std::size_t>(VerdictCode::exited)];
}

}  // namespace

TEST_CASE("the series of a dead process stay for five minutes, its counts for good") {
  World world;
  CHECK(world.page()->process->living == 1);
  world.wait(24h);
  CHECK(world.page()->process != nullptr);  // while it lives

  world.end_process();
  world.remove_recording();
  world.wait(5min - 1ms);
  const auto last = world.page();
  REQUIRE(last->process != nullptr);
  CHECK(last->process->living == 0);
  CHECK(last->process->counts.failures_total() == 3);
  CHECK(deaths_of(*last->process) == 1);
  CHECK(last->program->counts.failures_total() == 3);

  world.wait(1ms);
  const auto after = world.page();
  CHECK(after->process == nullptr);
  REQUIRE(after->program != nullptr);
  CHECK(after->program->counts.failures_total() == 3);
  CHECK(deaths_of(*after->program) == 1);
}

TEST_CASE("a process whose recording cannot be deleted does not come back") {
  World world;
  world.end_process();
  world.wait(5min);
  CHECK(world.page()->process == nullptr);
  world.wait(1h);
  CHECK(world.page()->process == nullptr);
  CHECK(deaths_of(*world.page()->program) == 1);
}

// --- Which processes that end well have a row, and how many rows a dump directory keeps

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
  const TemporaryDirectory scratch;
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
