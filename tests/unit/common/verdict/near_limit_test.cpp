// The verdicts on a near limit and on memory pressure.
#include <doctest/doctest.h>

#include <string>

#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::verdict;
using session::SessionImage;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string evidence_of(const verdict::Verdict& verdict) {
  std::string text;
  for (unsigned i = 0; i < verdict.evidence_count; ++i)
    text += verdict.evidence[i] + std::string{"\n"};
  return text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the cgroup's limit counts what is charged; untouched memory has a line of its own") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 192 * kMiB;
  health.rss_bytes = 182 * kMiB;
  health.live_bytes = 1182 * kMiB;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::near_limit, 0);
  CHECK(verdict.code == VerdictCode::near_limit);
  CHECK(verdict.limit.kind == LimitKind::cgroup);
  CHECK(verdict.limit.bytes == 200 * kMiB);
  CHECK(verdict.limit.used_bytes == 192 * kMiB);
  CHECK(std::string{verdict.summary} ==
        "python3.11 is at 96 % of the cgroup's limit of 200.0 MiB (working set 192.0 MiB): the "
        "kernel will kill it at the limit, unless there is swap");
  CHECK(has(evidence_of(verdict),
            "allocated but never touched: 1000.0 MiB; the kernel counts it as used only once it is "
            "touched\n"));
  image.header().soft_limit_bytes = 4096 * kMiB;
  CHECK(has(evidence_of(verdict::verdict_of(image.view(), Trigger::near_limit, 0)),
            "only once it is touched; the soft limit counts it already\n"));
  health.swap_bytes = 1000 * kMiB;
  CHECK_FALSE(
      has(evidence_of(verdict::verdict_of(image.view(), Trigger::near_limit, 0)), "never touched"));
}

TEST_CASE("resident memory is not counted twice") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 196 * kMiB;
  health.rss_bytes = 190 * kMiB;
  health.live_bytes = 185 * kMiB;
  const std::string summary = verdict::verdict_of(image.view(), Trigger::near_limit, 0).summary;
  CHECK(has(summary, "at 98 % of the cgroup's limit of 200.0 MiB (working set 196.0 MiB)"));
}

TEST_CASE("the nearest of several limits counts") {
  SessionImage image;
  session::Header& header = image.header();
  header.health.cgroup_limit_bytes = 200 * kMiB;
  header.health.cgroup_used_bytes = 100 * kMiB;
  header.health.live_bytes = 95 * kMiB;
  header.health.rss_bytes = 95 * kMiB;
  header.soft_limit_bytes = 100 * kMiB;
  CHECK(verdict::verdict_of(image.view(), Trigger::near_limit, 0).limit.kind == LimitKind::soft);
  header.health.vm_bytes = 990 * kMiB;
  header.health.rlimit_as_bytes = 1000 * kMiB;
  CHECK(verdict::verdict_of(image.view(), Trigger::near_limit, 0).limit.kind ==
        LimitKind::rlimit_as);
}

TEST_CASE("pressure has the faults and the swap of the process") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.pressure_some = 6050;
  health.pressure_full = 4507;
  health.major_faults = 12345;
  health.swap_bytes = 300 * kMiB;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::pressure, 0);
  CHECK(verdict.code == VerdictCode::memory_pressure);
  CHECK(has(verdict.summary, "is thrashing: it waits for memory instead of working"));
  CHECK(has(verdict.summary, "all tasks of the machine or its cgroup did so for 45.07 % of the"));
  CHECK(has(evidence_of(verdict), "swapped out 300.0 MiB; 12345 major faults"));
  CHECK(has(evidence_of(verdict), "some 60.50 %, full 45.07 %"));
}

TEST_CASE("pressure on some tasks is reported as theirs") {
  SessionImage image;
  session::Health& health = image.header().health;
  health.pressure_some = 1250;
  health.pressure_full = 3;
  const verdict::Verdict verdict = verdict::verdict_of(image.view(), Trigger::pressure, 0);
  CHECK(has(verdict.summary, "some tasks of the machine or its cgroup did so for 12.50 % of the"));
  health.pressure_some = 3;
  CHECK(!has(verdict::verdict_of(image.view(), Trigger::pressure, 0).summary, "%"));
}

TEST_CASE("a reading from outside takes precedence over the process' own") {
  SessionImage image;
  image.header().health.pressure_full = 100;
  auto seen = std::make_unique<session::Health>();
  seen->pressure_some = 3100;
  seen->pressure_full = 3000;
  verdict::Verdict verdict;
  verdict::explain(verdict, image.view(), {.trigger = Trigger::pressure, .health = seen.get()});
  CHECK(has(verdict.summary, "30.00 %"));
}
