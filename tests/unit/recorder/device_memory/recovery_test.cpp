// A failed GPU request that succeeds on retry: its bundle gets the outcome immediately.
#include <doctest/doctest.h>

#include <thread>

#include "common/text/exception_texts.h"
#include "recorder/device_memory/memory.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failures.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::g_bundles;
using recorder::DeviceKey;
using recorder::DeviceKind;
using recorder::Vendor;

namespace {

struct Fixture {
  Fixture() {
    need(Mode::sampled);
    recorder::reset_failures_after_fork(kHook);
    g_bundles = {};
    fail_request(200);
    REQUIRE(g_bundles.written == 1);
  }
  void fail_request(std::uint64_t mib) {
    doubles::t_stack = ++stack;
    recorder::on_failure(kHook, {Space::cuda, Api::cuMemAlloc, mib * kMiB}, 2,
                         recorder::FailedBy::system);
  }
  void serve(Api api, std::uint64_t mib) {
    const recorder::DeviceName name{Vendor::cuda, DeviceKey::address, ++block};
    recorder::on_device_allocate(kHook, {api, name, DeviceKind::block, mib * kMiB});
  }
  static inline std::uint32_t stack = 100;
  static inline std::uint64_t block = 0;
};

}  // namespace

TEST_CASE("the same, or more") {
  Fixture f;
  f.serve(Api::cuMemAlloc, 199);
  f.serve(Api::cuMemAllocPitch, 200);
  CHECK(g_bundles.completed == 0);
  f.serve(Api::cuMemAlloc, 200);
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
  f.serve(Api::cuMemAlloc, 200);
  recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
}

TEST_CASE("while its bundle is being written: on the next tick") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  CHECK(g_bundles.completed == 0);
  g_bundles.under_way = false;
  recorder::resolve_recovered(kHook, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
}

TEST_CASE("or at the end, whatever the exit status") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  g_bundles.under_way = false;
  recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
}

TEST_CASE("an earlier report does not excuse the next failure") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  g_bundles.under_way = false;
  f.fail_request(300);
  CHECK(g_bundles.written == 2);
  recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
  CHECK(g_bundles.outcome == OutcomeKind::exited);
}

TEST_CASE("another thread's exception belongs to the failure that did not succeed later") {
  Fixture f;
  const auto report_elsewhere = [] {
    const text::ExceptionTexts texts;
    std::thread{[&] {
      recorder::report_exception(kHook, texts, 0, recorder::FailureOf::any_thread);
    }}.join();
  };
  SUBCASE("served") {
    f.serve(Api::cuMemAlloc, 200);
    report_elsewhere();
    CHECK(g_bundles.written == 2);
    CHECK(g_bundles.last.trigger == Trigger::exception);
  }
  SUBCASE("not served: once") {
    report_elsewhere();
    CHECK(g_bundles.written == 1);
    CHECK(g_bundles.completed_last != 0);
    report_elsewhere();
    CHECK(g_bundles.written == 2);
    CHECK(g_bundles.last.trigger == Trigger::exception);
  }
}
