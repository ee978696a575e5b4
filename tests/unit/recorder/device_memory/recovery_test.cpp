// A GPU's refused request that is served when it is made again: its bundle says so at once.
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
    refuse(200);
    REQUIRE(g_bundles.written == 1);
  }
  void refuse(std::uint64_t mib) {
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
  recorder::complete_outcome_at_end(kHook, 3);
  CHECK(g_bundles.completed == 1);
}

TEST_CASE("while its bundle is still on its way: on the tick") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  CHECK(g_bundles.completed == 0);
  g_bundles.under_way = false;
  recorder::note_recovery(kHook, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
}

TEST_CASE("or at the end, whatever the program ends with") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  g_bundles.under_way = false;
  recorder::complete_outcome_at_end(kHook, 3);
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
}

TEST_CASE("what was told before that is no excuse for the next") {
  Fixture f;
  g_bundles.under_way = true;
  f.serve(Api::cuMemAlloc, 200);
  g_bundles.under_way = false;
  f.refuse(300);
  CHECK(g_bundles.written == 2);
  recorder::complete_outcome_at_end(kHook, 3);
  CHECK(g_bundles.outcome == OutcomeKind::exited);
}

TEST_CASE("an exception that another thread met is of what was not served") {
  Fixture f;
  const auto tell_elsewhere = [] {
    const text::ExceptionTexts texts;
    std::thread{[&] {
      recorder::report_exception(kHook, texts, 0, recorder::FailureOf::any_thread);
    }}.join();
  };
  SUBCASE("served") {
    f.serve(Api::cuMemAlloc, 200);
    tell_elsewhere();
    CHECK(g_bundles.written == 2);
    CHECK(g_bundles.last.trigger == Trigger::exception);
  }
  SUBCASE("not served: once") {
    tell_elsewhere();
    CHECK(g_bundles.written == 1);
    CHECK(g_bundles.told != 0);
    tell_elsewhere();
    CHECK(g_bundles.written == 2);
    CHECK(g_bundles.last.trigger == Trigger::exception);
  }
}
