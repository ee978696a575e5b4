// When alerts are due.
#include <doctest/doctest.h>

#include "tools/service/alerts/alerts.h"

using namespace oomrec::tools;
using namespace std::chrono_literals;

namespace {

service::Incident incident(service::Rule rule, int pid) {
  service::Incident made;
  made.rule = rule;
  made.pid = pid;
  made.program = "train";
  made.text = "train is short of memory";
  return made;
}

const service::RateLimit::Clock::time_point kStart{1000h};

}  // namespace

TEST_CASE("a rule alerts at once, and then once a minute with all that came in between") {
  service::RateLimit rate_limit;
  CHECK(!rate_limit.due());
  rate_limit.add(incident(service::Rule::death, 1));
  auto alerts = rate_limit.take_due(kStart);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 1);
  CHECK(alerts[0].also.empty());
  CHECK(!rate_limit.due());

  for (int pid = 2; pid < 30; ++pid) rate_limit.add(incident(service::Rule::death, pid));
  CHECK(rate_limit.take_due(kStart + 59s).empty());
  CHECK(rate_limit.due() == kStart + 60s);
  alerts = rate_limit.take_due(kStart + 60s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.pid == 2);
  CHECK(alerts[0].also.size() == service::RateLimit::kMostAlso);
  CHECK(alerts[0].left_out == 28 - 1 - service::RateLimit::kMostAlso);
  CHECK(service::json_of(alerts[0])["text"] == "train is short of memory (and 27 more)");

  CHECK(rate_limit.take_due(kStart + 10min).empty());
}

TEST_CASE("rules do not wait for each other") {
  service::RateLimit rate_limit;
  rate_limit.add(incident(service::Rule::death, 1));
  CHECK(rate_limit.take_due(kStart).size() == 1);
  rate_limit.add(incident(service::Rule::failure, 1));
  rate_limit.add(incident(service::Rule::death, 2));
  const auto alerts = rate_limit.take_due(kStart + 1s);
  REQUIRE(alerts.size() == 1);
  CHECK(alerts[0].first.rule == service::Rule::failure);
}
