// Failures when their table is full. A process of its own, because entries are never removed.
#include <doctest/doctest.h>

#include "recorder/failures/failures.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::g_bundles;
using session::g_session;

namespace {

void fail_request(std::uint32_t stack) {
  doubles::t_stack = stack;
  recorder::on_failure(kHook, {Space::heap, Api::malloc, 1 << 20, false}, ENOMEM,
                       recorder::FailedBy::system);
}

void fill_table() {
  std::uint32_t entry = 0;
  while (g_session.failures.append(kHook, entry, [](session::Failure&) {})) continue;
}

}  // namespace

TEST_CASE("a bundle without its request is written only if there is no other") {
  need(Mode::sampled, 16 * kMiB);
  fill_table();
  fail_request(1);
  CHECK(g_bundles.written == 0);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.last.failure == 0);
  fail_request(2);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 1);
}
