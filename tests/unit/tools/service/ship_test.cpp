// The list of what has arrived, and names of objects.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/base/directory.h"
#include "tools/service/ship/ledger.h"
#include "tools/service/ship/shipper.h"
#include "tools/service/ship/store.h"

using namespace oomrec::tools;
namespace fs = std::filesystem;

namespace {

const std::string kBundle = "oom_cpu_20261130_101530_001";
const service::Plan kPlan{"2026-11-30", "node7-" + kBundle + "-0123", "tar.zst", "a%20%3C-%20b"};

struct Spool {
  TemporaryDirectory scratch;
  fs::path directory = scratch.path();
  fs::path file = directory / ".shipped";

  std::string text() const {
    std::ifstream in{file};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  service::Arrived now(const std::string& bundle = kBundle) const {
    return service::Ledger{directory}.of(bundle);
  }
};

}  // namespace

TEST_CASE("what arrives is in the list, and a bundle of which nothing is left is marked") {
  const Spool spool;
  CHECK(!spool.now().plan);
  service::Ledger ledger{spool.directory};
  REQUIRE(ledger.add_row(kBundle, kPlan, false));
  CHECK(spool.now().plan->raw_key() == "raw/day=2026-11-30/node7-" + kBundle + "-0123.tar.zst");
  CHECK(spool.now().plan->signature == kPlan.signature);
  CHECK(!spool.now().final_row);
  CHECK(spool.now().awaits_raw());
  CHECK(spool.text().find(" shipped\n") == std::string::npos);
  REQUIRE(ledger.add_raw(kBundle, 4711));
  CHECK(!spool.now().awaits_raw());
  CHECK(spool.now().raw_bytes == 4711);
  CHECK(spool.text().ends_with(kBundle + " shipped\n"));
  REQUIRE(ledger.add_row(kBundle, kPlan, true));
  CHECK(spool.now().final_row);
  REQUIRE(ledger.add_unreadable("oom_cpu_20261130_101530_002"));
  CHECK(spool.now("oom_cpu_20261130_101530_002").unreadable);
}

TEST_CASE("of two plans for a bundle the first holds, also once the list is compacted") {
  const Spool spool;
  fs::create_directory(spool.directory / kBundle);
  const service::Plan without{kPlan.day, kPlan.stem, std::string{service::kNoRaw}, "a"};
  service::Ledger ledger{spool.directory}, other{spool.directory};
  CHECK(ledger.add_plan(kBundle, kPlan)->has_raw());
  CHECK(other.add_plan(kBundle, without)->has_raw());
  CHECK(!spool.now().row);
  CHECK(!spool.now().awaits_raw());
  for (int i = 0; i < 300; ++i) REQUIRE(other.add_plan("oom_gone_20200101_000000_001", without));
  const std::string text = spool.text();
  CHECK(std::count(text.begin(), text.end(), '\n') < 300);
  CHECK(spool.now().plan->raw_key() == kPlan.raw_key());
  REQUIRE(ledger.add_row(kBundle, kPlan, true));
  CHECK(spool.now().awaits_raw());
  CHECK(spool.text().find(" shipped\n") == std::string::npos);
}

TEST_CASE("a line that a crash has cut is ignored, and the next one is whole") {
  const Spool spool;
  std::ofstream{spool.file} << kBundle << " row 2026-11-30 node7";
  CHECK(!spool.now().plan);
  REQUIRE(service::Ledger{spool.directory}.add_row(kBundle, kPlan, true));
  CHECK(spool.now().final_row);
}

TEST_CASE("the list forgets bundles that are gone, but not what counts for today") {
  const Spool spool;
  fs::create_directory(spool.directory / kBundle);
  {
    std::ofstream list{spool.file};
    for (int i = 0; i < 1000; ++i)
      list << "oom_cpu_20200101_000000_" << i << " row 2020-01-01 stem tar.zst sig\n";
    list << "oom_cpu_29990101_000000_001 row 2999-01-01 stem tar.zst sig\n";
    list << "oom_cpu_29990101_000000_002 row 2999-01-01 stem - sig\n";
  }
  REQUIRE(service::Ledger{spool.directory}.add_row(kBundle, kPlan, true));
  CHECK(service::Ledger{spool.directory}.bundles().size() == 2);
  CHECK(spool.now().final_row);
  CHECK(spool.now("oom_cpu_29990101_000000_001").plan->has_raw());
}

TEST_CASE("names in URLs") {
  CHECK(service::percent_encoded("rows/day=2026-11-30/a_b.json") ==
        "rows/day%3D2026-11-30/a_b.json");
  CHECK(service::percent_encoded("a b\"\n\xc3\xa9") == "a%20b%22%0A%C3%A9");
}

TEST_CASE("archives of a storm are spread over five seconds") {
  const Spool spool;
  fs::create_directory(spool.directory / kBundle);
  std::ofstream{spool.directory / kBundle / "manifest.json"} << "{}";
  REQUIRE(service::Ledger{spool.directory}.add_row(kBundle, kPlan, true));
  const service::ShipSettings settings{
      [](const std::string&, const fs::path&) { return service::PutResult::stored; }};
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::duration> waits;
  for (int host = 0; host < 20; ++host) {
    const auto start = Clock::now();
    service::Shipper shipper{settings, {spool.directory}};
    REQUIRE(shipper.wake_time());
    waits.push_back(*shipper.wake_time() - start);
    CHECK(shipper.wake_time() <= Clock::now() + std::chrono::seconds{5});
  }
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
  CHECK(*most - *least > std::chrono::seconds{1});
}

TEST_CASE("a spool is begun, and again only when it is a day old") {
  const Spool spool;
  const auto written = [&] { return fs::last_write_time(spool.file); };
  service::Ledger{spool.directory}.begin();
  CHECK(spool.text().empty());
  const auto at = written();
  fs::last_write_time(spool.file, at - std::chrono::hours{23});
  service::Ledger{spool.directory}.begin();
  CHECK(written() == at - std::chrono::hours{23});
  fs::last_write_time(spool.file, at - std::chrono::hours{25});
  service::Ledger{spool.directory}.begin();
  CHECK(written() >= at - std::chrono::hours{1});
}
