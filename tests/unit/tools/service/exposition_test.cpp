// The text of a scrape, the label values that counters have from the start, endpoints and URLs.
#include <doctest/doctest.h>

#include <algorithm>

#include "tools/base/error.h"
#include "tools/service/alerts/notifiers.h"
#include "tools/service/fleet/label_values.h"
#include "tools/service/metrics/endpoint.h"
#include "tools/service/metrics/exposition.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

service::Gauges near(std::uint64_t headroom, std::uint64_t limit, std::uint64_t live) {
  service::Gauges gauges;
  gauges.spaces[Space::heap] = {live, live + 1};
  gauges.rss_bytes = 17;
  gauges.limits[LimitKind::soft] = limit;
  gauges.nearest = service::Gauges::Nearest{LimitKind::soft, limit, headroom};
  gauges.devices[{"cuda:0", "GPU-1"}] = {live, 1009};
  return gauges;
}

}  // namespace

TEST_CASE("label values are escaped, control characters and invalid UTF-8 replaced") {
  CHECK(service::escaped_label("plain é") == "plain é");
  CHECK(service::escaped_label("a\\b\"c\nd") == "a\\\\b\\\"c\\nd");
  CHECK(service::escaped_label("\n") == "\\n");
  CHECK(service::escaped_label("a\xff"
                               "b") ==
        "a\uFFFD"
        "b");
  CHECK(service::escaped_label("a\x01\rb") == "a??b");
  CHECK(service::escaped_label("") == "");
}

TEST_CASE("a program has the sum of its processes, and the nearest of their limits") {
  service::Gauges sum;
  sum.add(near(101, 1000, 307));
  sum.add(near(29, 500, 211));
  CHECK(sum.spaces[Space::heap].live == 307 + 211);
  CHECK(sum.spaces[Space::heap].peak == 308);  // of one process: peaks are not summed
  CHECK(sum.rss_bytes == 34);
  CHECK(sum.limits[LimitKind::soft] == 500);
  CHECK(sum.nearest->headroom_bytes == 29);
  CHECK(sum.devices.begin()->second.used == 307);  // the same device, reported twice
}

TEST_CASE("counters of a row first seen after the last scrape are 0, gauges have their values") {
  const auto now = service::PollClient::Clock::now();
  std::map<service::SeriesRow, service::RowFigures> rows;
  for (const int pid : {7, 8}) {
    service::RowFigures& figures = rows[service::SeriesRow{"train", "0", pid}];
    figures.gauges.rss_bytes = 101;
    figures.counts.events = 53;
    figures.counts.failures[Api::malloc] = 3;
    figures.first_seen = now - std::chrono::seconds{pid == 7 ? 60 : 1};
  }
  const std::string text = service::exposition(rows, now - std::chrono::seconds{10});
  CHECK(has_line(text, R"(oomrec_events_total{program="train",rank="0",pid="7"} 53)"));
  CHECK(has_line(text, R"(oomrec_events_total{program="train",rank="0",pid="8"} 0)"));
  CHECK(
      has_line(text, R"(oomrec_failures_total{program="train",rank="0",pid="8",api="malloc"} 0)"));
  CHECK(has_line(text, R"(oomrec_rss_bytes{program="train",rank="0",pid="8"} 101)"));
  CHECK(has_line(service::exposition(rows),
                 R"(oomrec_failures_total{program="train",rank="0",pid="8",api="malloc"} 3)"));
}

TEST_CASE("what was shipped has metrics with --ship alone") {
  const service::ShipFigures shipped{.rows = 7, .raws = 3, .errors = 2, .unshipped = 1};
  const std::string text = service::exposition({}, {}, &shipped);
  CHECK(has_line(text, R"(oomrec_shipped_total{what="row"} 7)"));
  CHECK(has_line(text, R"(oomrec_shipped_total{what="raw"} 3)"));
  CHECK(has_line(text, "oomrec_unshipped_bundles 1"));
  CHECK(has_line(text, "oomrec_ship_errors_total 2"));
  CHECK(service::exposition({}).find("ship") == std::string::npos);
}

TEST_CASE("the first signatures have counts of their own, later ones are one series") {
  service::SignatureCounts signatures;
  for (int i = 0; i < 25; ++i) signatures.count("app.py:f" + std::to_string(i));
  signatures.count("app.py:f3");
  signatures.count("app.py:f23");
  signatures.count("");
  CHECK(signatures.counts().size() <= service::SignatureCounts::kMostSignatures + 2);
  const std::string text = service::exposition({}, {}, nullptr, &signatures.counts());
  CHECK(has_line(text, R"(oomrec_signature_deaths_total{signature="app.py:f3"} 2)"));
  CHECK(has_line(text, R"(oomrec_signature_deaths_total{signature="other"} 6)"));
  CHECK(has_line(text, R"(oomrec_signature_deaths_total{signature="unknown"} 1)"));
  CHECK(text.find("f23") == std::string::npos);
  // Prometheus sees no increase in a series that begins at 1.
  const auto before = service::PollClient::Clock::now() - std::chrono::seconds{60};
  CHECK(has_line(service::exposition({}, before, nullptr, &signatures.counts()),
                 R"(oomrec_signature_deaths_total{signature="app.py:f3"} 0)"));
  CHECK(service::exposition({}).find("signature") == std::string::npos);
}

TEST_CASE("functions of a GPU driver have series where a process uses it") {
  std::map<service::SeriesRow, service::RowFigures> rows;
  rows[service::SeriesRow{"a", "", 1}].reached[static_cast<std::size_t>(session::Vendor::cuda)] =
      true;
  rows[service::SeriesRow{"a", "", 2}];
  rows[service::SeriesRow{"a", ""}];
  const std::string text = service::exposition(rows);
  const auto line = [](const std::string& pid) {
    return "oomrec_failures_total{program=\"a\",rank=\"\"" + pid + ",api=\"cuMemAlloc\"} 0";
  };
  CHECK(has_line(text, line(",pid=\"1\"")));
  CHECK(has_line(text, line("")));
  CHECK(!has_line(text, line(",pid=\"2\"")));
}

TEST_CASE("which functions can fail") {
  const auto has = [](service::ApiSet set, Api api) {
    const std::vector<Api>& apis = service::failable_apis(set);
    return std::find(apis.begin(), apis.end(), api) != apis.end();
  };
  CHECK(has(service::ApiSet::host, Api::malloc));
  CHECK(has(service::ApiSet::host, Api::pthread_create));
  CHECK(has(service::ApiSet::host, Api::mprotect));  // commits what was reserved
  CHECK(has(service::ApiSet::host, Api::shmat));
  CHECK(has(service::ApiSet::host, Api::reportOutOfMemoryToProfiler));
  CHECK(has(service::ApiSet::host, Api::none));  // other
  CHECK(!has(service::ApiSet::host, Api::free));
  CHECK(!has(service::ApiSet::host, Api::munmap));
  CHECK(!has(service::ApiSet::host, Api::cuMemAlloc));
  CHECK(has(service::ApiSet::cuda, Api::cuMemAlloc));
  CHECK(has(service::ApiSet::cuda, Api::cuCtxCreate));
  CHECK(!has(service::ApiSet::cuda, Api::cuMemFree));
  CHECK(!has(service::ApiSet::cuda, Api::cuMemPoolTrimTo));
  CHECK(has(service::ApiSet::hip, Api::hipMalloc));
  CHECK(!has(service::ApiSet::hip, Api::hipHostFree));
  CHECK(service::failable_apis(service::ApiSet::host).size() == 28);
  CHECK(service::failable_apis(service::ApiSet::cuda).size() +
            service::failable_apis(service::ApiSet::hip).size() <=
        110);
  CHECK(service::death_verdicts().size() == kVerdictNames.size() - 3);
}

TEST_CASE("addresses to serve at") {
  CHECK(service::endpoint_in("9464").host == "");
  CHECK(service::endpoint_in("9464").port == 9464);
  CHECK(service::endpoint_in(":0").port == 0);
  CHECK(service::endpoint_in("0.0.0.0:1").host == "0.0.0.0");
  CHECK(service::endpoint_in("[::1]:9464").host == "::1");
  CHECK(service::endpoint_in("[::]:9464").port == 9464);
  for (const char* const text :
       {"", ":", "a:", "::1:9464", "1.2.3.4:65536", "host:-1", "host: 1", "9464 ", "0x10"})
    CHECK_THROWS_AS(service::endpoint_in(text), Error);
}

TEST_CASE("URLs to post to") {
  const service::HttpUrl plain = service::http_url_in("http://host");
  CHECK(plain.host == "host");
  CHECK(plain.port == "80");
  CHECK(plain.path == "/");
  const service::HttpUrl long_one = service::http_url_in("http://[::1]:8080/a/b?c=d#e");
  CHECK(long_one.host == "::1");
  CHECK(long_one.port == "8080");
  CHECK(long_one.path == "/a/b?c=d");
  CHECK(service::http_url_in("http://h?x").path == "/?x");
  for (const char* const text : {"", "http://", "http://:80/", "http://h:x/", "http://h:123456/",
                                 "http://a b/", "http://h/\r\nX: y", "http://u:p@h/", "ftp://h/"})
    CHECK_THROWS_AS(service::http_url_in(text), Error);
}
