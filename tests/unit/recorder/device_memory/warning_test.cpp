// Warnings of full devices, and failures that a program recovers from.
#include <doctest/doctest.h>

#include <thread>

#include "common/text/exception_texts.h"
#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/polling.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failures.h"
#include "recorder/recorder.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec::running;
using namespace oomrec;
using doubles::g_bundles;
using recorder::DeviceKey;
using recorder::DeviceKind;
using recorder::Vendor;

// --- The bundle before a device is full: when it is due, and for which device

namespace {

constexpr std::uint64_t kTotal = 1000 * kMiB;

struct Watched {
  // A new device. Even numbers have a user's limit of 500 MiB.
  Watched() {
    if (!recorder::is_active()) {
      Options options;
      options.session_dir = "/tmp";
      options.quiet = true;
      options.warn = 90;
      options.set_named(OptionId::warn);
      options.limit_gpu = "500M@0,500M@2,500M@4";
      REQUIRE(recorder::start(options));
      session::g_session.remove_file(kHook);
    }
    recorder::reset_failures_after_fork(kHook);
    g_bundles = {};
  }
  void describe(std::int32_t ordinal) {
    device = recorder::describe_device(kHook, {Vendor::cuda, ordinal, {}, "GPU"});
    REQUIRE(device != 0);
  }

  void allocate(std::uint64_t mib) {
    const recorder::DeviceName name{Vendor::cuda, DeviceKey::address, ++last};
    recorder::on_device_allocate(kHook,
                                 {Api::cuMemAlloc, name, DeviceKind::block, mib * kMiB, device});
  }
  void free_last() {
    const recorder::DeviceName name{Vendor::cuda, DeviceKey::address, last--};
    REQUIRE(recorder::on_device_free(kHook, Api::cuMemFree, name).gone);
  }
  // Other processes have taken as much.
  void look(std::uint64_t used_mib) {
    recorder::on_device_polled(kHook, device, kTotal - used_mib * kMiB, kTotal);
  }
  bool should_poll() const {
    return recorder::should_poll(kHook, device, recorder::PollAfter::success);
  }

  std::uint32_t device = 0;
  static inline std::uint64_t last = 0;
};

}  // namespace

TEST_CASE("the user's limit: one warning per approach") {
  Watched on;
  on.describe(0);
  on.allocate(440);
  CHECK(g_bundles.written == 0);
  on.allocate(11);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.last.trigger == Trigger::near_limit);
  CHECK(g_bundles.near_device == on.device);
  CHECK(session::g_session.header().near_device == 0);
  on.allocate(1);
  on.free_last();
  on.free_last();
  on.allocate(11);
  CHECK(g_bundles.written == 1);  // it fell only to 88 %: still near
  on.free_last();
  on.free_last();
  on.allocate(100);
  on.allocate(360);
  CHECK(g_bundles.written == 2);
}

TEST_CASE("a full device, whichever process fills it") {
  Watched on;
  on.describe(1);
  on.look(100);
  on.allocate(100);
  on.look(890);
  CHECK(g_bundles.written == 0);
  on.look(900);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.near_device == on.device);
  on.look(860);
  on.look(910);
  CHECK(g_bundles.written == 1);
  on.look(800);
  on.look(910);
  CHECK(g_bundles.written == 2);
}

TEST_CASE("recent allocations near the limit trigger an extra query of the driver") {
  Watched on;
  on.describe(3);
  on.look(500);
  on.allocate(300);
  CHECK_FALSE(on.should_poll());
  on.allocate(100);
  CHECK(on.should_poll());
  CHECK(g_bundles.written == 0);  // the driver has not been queried yet
  on.look(900);
  CHECK(g_bundles.written == 1);
  CHECK_FALSE(on.should_poll());

  // A free moves it away from the limit before the next query of the driver.
  on.free_last();
  on.allocate(1);
  CHECK(g_bundles.written == 1);
  on.allocate(99);  // as much as was free at the last query
  CHECK(g_bundles.written == 2);
}

// --- A failed GPU request that succeeds on retry: its bundle gets the outcome immediately

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
  recorder::complete_outcome_at_end(kHook, 3);
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
  recorder::complete_outcome_at_end(kHook, 3);
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
  recorder::complete_outcome_at_end(kHook, 3);
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
