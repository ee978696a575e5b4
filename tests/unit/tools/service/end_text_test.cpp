// Descriptions of how processes ended.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "common/verdict/kinds.h"
#include "tools/service/alerts/incident.h"
#include "tools/service/fleet/label_values.h"

using namespace oomrec;
using namespace oomrec::tools;

TEST_CASE("the outcome and the verdict are independent") {
  const auto text = [](std::string_view outcome, VerdictCode verdict) {
    return service::end_text(outcome, verdict);
  };
  CHECK(text("signal 9", VerdictCode::soft_limit) ==
        "was ended by SIGKILL after a refusal at its soft limit");
  CHECK(text("exited 1", VerdictCode::soft_limit) ==
        "ended with exit code 1 after a refusal at its soft limit");
  CHECK(text("oom_killed", VerdictCode::cgroup_oom_kill) ==
        "was killed by the kernel: its memory cgroup was at its limit");
  CHECK(text("signal 6", VerdictCode::uncaught_bad_alloc) ==
        "was ended by SIGABRT after an uncaught bad_alloc");
  CHECK(text("signal 40", VerdictCode::killed_near_limit) ==
        "was ended by signal 40 near a limit of its memory");
  for (const char* const outcome : {"unknown", "", "signal", "signal x", "exited 1 2"})
    CHECK(text(outcome, VerdictCode::allocation_failed) == "is gone after memory was refused");
}

TEST_CASE("a verdict that is not proven says so") {
  const auto text = [](std::optional<Certainty> certainty) {
    return service::end_text("signal 9", VerdictCode::killed_near_limit, certainty);
  };
  CHECK(text(Certainty::possible) ==
        "was ended by SIGKILL near a limit of its memory (possible, not proven)");
  CHECK(text(Certainty::likely).ends_with("(likely, not proven)"));
  CHECK(text(Certainty::proven) == "was ended by SIGKILL near a limit of its memory");
  CHECK(text({}) == text(Certainty::proven));  // a bundle of an older version
}

TEST_CASE("each memory verdict has its own words") {
  for (const VerdictCode verdict : service::death_verdicts()) {
    CAPTURE(name_of(verdict));
    const bool plain =
        service::end_text("signal 9", verdict).ends_with(" after memory was refused");
    const bool is_plain = !verdict::is_death_related_to_memory(verdict) ||
                          verdict == VerdictCode::allocation_failed ||
                          verdict == VerdictCode::crash_after_refusal;
    CHECK(plain == is_plain);
  }
}
