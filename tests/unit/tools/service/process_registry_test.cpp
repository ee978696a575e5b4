// The lifetime of series.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tools/service/fleet/process_registry.h"

#include <doctest/doctest.h>

#include "tests/unit/tools/recording_image.h"

using namespace oomrec;
using namespace oomrec::tools;
using namespace std::chrono_literals;
using tests::RecordingImage;

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
