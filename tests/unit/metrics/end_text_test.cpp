// Ends of processes, in words.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "tools/service/alerts/end_text.h"
#include "tools/service/fleet/label_values.h"

using namespace oomrec;
using namespace oomrec::tools;

TEST_CASE("how it ended and what came before are told apart") {
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
        "was ended by SIGABRT after a bad_alloc that nobody caught");
  CHECK(text("signal 40", VerdictCode::killed_near_limit) ==
        "was ended by signal 40 near a limit of its memory");
  for (const char* const outcome : {"unknown", "", "signal", "signal x", "exited 1 2"})
    CHECK(text(outcome, VerdictCode::allocation_failed) == "is gone after memory was refused");
}

TEST_CASE("each verdict that memory is the reason for has words of its own") {
  for (const VerdictCode verdict : service::verdicts_of_deaths()) {
    CAPTURE(name_of(verdict));
    const bool plain =
        service::end_text("signal 9", verdict).ends_with(" after memory was refused");
    const bool is_plain = !service::is_for_memory(verdict) ||
                          verdict == VerdictCode::allocation_failed ||
                          verdict == VerdictCode::crash_after_refusal;
    CHECK(plain == is_plain);
  }
}
