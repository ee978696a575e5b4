// When alerts are due.
#include <doctest/doctest.h>

#include "tools/service/alerts/rate_limit.h"

using namespace oomrec::tools;
using namespace std::chrono_literals;

namespace {

service::Concern trouble(service::Rule rule, int pid) {
  service::Concern made;
  made.rule = rule;
  made.pid = pid;
  made.program = "train";
  made.text = "train is in trouble";
  return made;
}

const service::Pace::Clock::time_point kStart{1000h};

}  // namespace

TEST_CASE("a figure that hovers at its threshold falls once") {
  service::Hysteresis hysteresis;
  CHECK(!hysteresis.falls("a", 0.11, 0.1));
  CHECK(hysteresis.falls("a", 0.09, 0.1));
  CHECK(!hysteresis.falls("a", 0.05, 0.1));
  CHECK(!hysteresis.falls("a", 0.14, 0.1));  // not far enough
  CHECK(!hysteresis.falls("a", 0.09, 0.1));
  CHECK(hysteresis.falls("b", 0.09, 0.1));  // another's
  CHECK(!hysteresis.falls("a", 0.151, 0.1));
  CHECK(hysteresis.falls("a", 0.0999, 0.1));
  hysteresis.forget("a");
  CHECK(hysteresis.falls("a", 0.09, 0.1));
}

TEST_CASE("a rule alerts at once, and then once a minute with all that came in between") {
  service::Pace pace;
  CHECK(!pace.due());
  pace.add(trouble(service::Rule::death, 1));
  auto alerts = pace.take(kStart);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 1);
  CHECK(alerts[0].also.empty());
  CHECK(!pace.due());

  for (int pid = 2; pid < 30; ++pid) pace.add(trouble(service::Rule::death, pid));
  CHECK(pace.take(kStart + 59s).empty());
  CHECK(pace.due() == kStart + 60s);
  alerts = pace.take(kStart + 60s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 2);
  CHECK(alerts[0].also.size() == service::Pace::kMostAlso);
  CHECK(alerts[0].left_out == 28 - 1 - service::Pace::kMostAlso);
  CHECK(service::json_of(alerts[0])["text"] == "train is in trouble (and 27 more)");

  CHECK(pace.take(kStart + 10min).empty());
}

TEST_CASE("rules do not wait for each other") {
  service::Pace pace;
  pace.add(trouble(service::Rule::death, 1));
  CHECK(pace.take(kStart).size() == 1);
  pace.add(trouble(service::Rule::failure, 1));
  pace.add(trouble(service::Rule::death, 2));
  const auto alerts = pace.take(kStart + 1s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.rule == service::Rule::failure);
}
