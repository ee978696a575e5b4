// GPU events in the ring: the driver's function, whose number does not fit into an ordinary event,
// and the device.
#include <doctest/doctest.h>

#include <vector>

#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/pytorch.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/failures.h"
#include "recorder/state/request.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using recorder::DeviceKey;
using recorder::DeviceKind;
using recorder::Vendor;
using session::Event;
using session::g_session;

namespace {

// All complete events of all threads.
std::vector<Event> events() {
  const session::View view = g_session.view();
  std::vector<Event> found;
  session::Lane lane;
  for (std::uint32_t i = 1; i < view.count(session::TableId::lanes); ++i) {
    REQUIRE(view.read(session::TableId::lanes, i, lane));
    Event event;
    for (std::uint64_t number = 0; number < lane.ring_next; ++number)
      if (view.event(lane, number, event) && !event.is_stamp()) found.push_back(event);
  }
  return found;
}

struct Fixture {
  Fixture() {
    need(Mode::exact);
    device = recorder::describe_device(kHook, {Vendor::cuda, 1, {}, "GPU"});
    REQUIRE(device != 0);
    before = events().size();
  }
  std::vector<Event> now() const {
    const std::vector<Event> all = events();
    return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
  }
  std::uint32_t device = 0;
  std::size_t before = 0;
};

}  // namespace

TEST_CASE("a driver's blocks and failures") {
  Fixture f;
  const recorder::DeviceName name{Vendor::cuda, DeviceKey::address, 0x7000};
  recorder::on_device_allocate(kHook,
                               {Api::cuMemAllocPitch, name, DeviceKind::block, 5 * kMiB, f.device});
  recorder::Request request{Space::cuda, Api::cuGraphInstantiateWithParams, 7 * kMiB};
  request.device = f.device;
  recorder::on_failure(kHook, request, 2, recorder::FailedBy::system);
  recorder::on_device_free(kHook, Api::cuMemFree, name);
  const std::vector<Event> seen = f.now();
  REQUIRE(seen.size() == 3);
  const Api apis[] = {Api::cuMemAllocPitch, Api::cuGraphInstantiateWithParams, Api::cuMemFree};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(seen[i].api == apis[i]);
    CHECK(seen[i].space == Space::cuda);
    CHECK(seen[i].device == f.device);
  }
  CHECK(seen[1].kind == EventKind::fail);
  CHECK(seen[1].bytes == 7 * kMiB);
  CHECK(g_session.failures.at(static_cast<std::uint32_t>(seen[1].address)).api ==
        static_cast<std::uint16_t>(Api::cuGraphInstantiateWithParams));
}

TEST_CASE("PyTorch's blocks on a device, and those of the host") {
  Fixture f;
  const auto report = [&](std::uint64_t address, std::int64_t change, std::uint32_t device) {
    recorder::on_torch_memory(kHook,
                              {Api::reportMemoryUsageToProfiler, address, change, 0, 0, device});
  };
  report(0x10000, 3 << 20, f.device);
  report(0x20000, 4 << 20, 0);
  report(0x10000, -(3 << 20), f.device);
  const std::vector<Event> seen = f.now();
  REQUIRE(seen.size() == 3);
  for (const Event& event : seen) CHECK(event.space == Space::torch);
  CHECK(seen[0].device == f.device);
  CHECK(seen[0].address == 0x10000);
  CHECK(seen[1].device == 0);
  CHECK(seen[2].kind == EventKind::free);
  CHECK(seen[2].device == f.device);
  CHECK(seen[2].bytes == 3 << 20);
}
