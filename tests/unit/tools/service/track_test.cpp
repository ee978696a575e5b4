// Alert rules and risk, on samples made by hand.
#include <doctest/doctest.h>

#include "tests/unit/tools/recording_image.h"
#include "tools/base/error.h"
#include "tools/findings/diagnose/diagnosis.h"
#include "tools/processes/observe/device_choice.h"
#include "tools/service/track/alerts.h"
#include "tools/service/track/flight_recorder.h"

using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

processes::MemorySample sample_at(std::uint64_t percent) {
  processes::MemorySample sample;
  sample.allocated_bytes = sample.reserved_bytes = sample.used_bytes = percent * kMiB;
  sample.total_bytes = 100 * kMiB;
  sample.bound = {"RAM", percent * kMiB, 100 * kMiB};
  return sample;
}

// The rules that alert, percentage by percentage: "w" warning, "c" critical, "." none.
std::string alerts_for(std::initializer_list<std::uint64_t> percents,
                       service::Thresholds thresholds = {}) {
  service::TrackAlerts alerts{thresholds};
  std::string text;
  for (const std::uint64_t percent : percents) {
    const auto found = alerts.check(sample_at(percent), 0);
    text += found.empty() ? '.' : found[0].rule == service::TrackRule::critical ? 'c' : 'w';
    CHECK(found.size() <= 1);
  }
  return text;
}

}  // namespace

TEST_CASE("a threshold alerts once, and again after the figure was five percent below it") {
  CHECK(alerts_for({79, 80, 81, 90, 95, 99, 94, 91, 96, 89, 95}) == ".w..c.....c");
  CHECK(alerts_for({80, 76, 80, 74, 80}) == "w...w");
  CHECK(alerts_for({50, 99, 50, 99}) == ".c.c");
  service::Thresholds lower;
  lower.warning_percent = 70;
  lower.critical_percent = 90;
  CHECK(alerts_for({69, 70, 89, 90}, lower) == ".w.c");
}

TEST_CASE("without a limit there is no alert") {
  service::TrackAlerts alerts{{}};
  processes::MemorySample sample = sample_at(99);
  sample.bound = {};
  CHECK(alerts.check(sample, 0).empty());
}

TEST_CASE("growth of more than 100 MiB between samples alerts, once while it continues") {
  service::TrackAlerts alerts{{}};
  const auto grows = [&](std::int64_t bytes) {
    const auto found = alerts.check(sample_at(10), bytes);
    return !found.empty() && found[0].rule == service::TrackRule::growth;
  };
  const auto limit = static_cast<std::int64_t>(100 * kMiB);
  CHECK(!grows(limit));
  CHECK(grows(limit + 1));
  CHECK(!grows(limit + 1));
  CHECK(!grows(-5));
  CHECK(grows(limit + 1));
}

TEST_CASE("fragmentation alerts only on an allocator's own figures") {
  processes::MemorySample sample = sample_at(10);
  sample.allocated_bytes = 69;
  sample.reserved_bytes = 100;
  service::TrackAlerts unknown{{}};
  CHECK(unknown.check(sample, 0).empty());
  sample.inactive_bytes = 31;
  service::TrackAlerts alerts{{}};
  REQUIRE(alerts.check(sample, 0).size() == 1);
  CHECK(alerts.check(sample, 0).empty());
}

TEST_CASE("a process that ends when it is critical leaves no bundle, and tracking goes on") {
  oomrec::tests::RecordingImage image;
  const recording::Recording recording{image.path()};
  std::filesystem::remove(image.path());
  service::FlightRecorder recorder{{.directory = "nowhere"}};
  const auto captured = recorder.capture(recording, "critical");
  CHECK(captured.bundle.empty());
  CHECK(captured.problem.find(image.path()) != std::string::npos);
  CHECK(recorder.captured() == 0);
  CHECK(recorder.capture(recording, "critical").problem.empty());  // too soon
}

TEST_CASE("risk begins at 85 %, at 30 % inactive, at one OOM") {
  const auto at = [](std::uint64_t percent) {
    findings::RiskFigures risk;
    risk.add(sample_at(percent));
    risk.add(sample_at(10));  // the highest counts
    return risk;
  };
  CHECK(!at(84).any());
  CHECK(at(85).high_utilization());
  CHECK(at(85).bound == "RAM");
  CHECK(at(85).peak_bytes == 85 * kMiB);
  CHECK(at(85).allocated_bytes == 10 * kMiB);
  CHECK(at(85).findings().size() == 1);
  CHECK(at(85).suggestions().size() == 1);
  processes::MemorySample sample = sample_at(10);
  sample.reserved_bytes = 100;
  for (const auto& [inactive, fragmented] : {std::pair{29u, false}, {30u, true}}) {
    findings::RiskFigures risk;
    sample.inactive_bytes = inactive;
    risk.add(sample);
    CHECK(risk.fragmented() == fragmented);
  }
  findings::RiskFigures risk;
  risk.ooms = 1;
  CHECK(risk.any());
}

TEST_CASE("a device is a number, by any of its names, or the host") {
  using Kind = processes::DeviceChoice::Kind;
  CHECK(processes::DeviceChoice::of("").kind == Kind::any);
  CHECK(processes::DeviceChoice::of("cpu").kind == Kind::host);
  for (const char* word : {"1", "cuda:1", "/GPU:1", "gpu:1", "hip:1"}) {
    CHECK(processes::DeviceChoice::of(word).kind == Kind::gpu);
    CHECK(processes::DeviceChoice::of(word).ordinal == 1);
  }
  CHECK(processes::DeviceChoice::of("cuda").ordinal == 0);
  for (const char* word : {"mps", "cuda:", "cuda:x", "1x", "tpu:0", "-2"})
    CHECK_THROWS_AS(processes::DeviceChoice::of(word), Error);
}
