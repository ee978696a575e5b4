// The bundle before a device is full: when it is due, and for which device.
#include <doctest/doctest.h>

#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/polling.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/failures.h"
#include "recorder/recorder.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::g_bundles;
using recorder::DeviceKey;
using recorder::DeviceKind;
using recorder::Vendor;

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
