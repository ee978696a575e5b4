// PyTorch's blocks and failures: what is counted, when a failure is reported, the largest free
// block.
#include <doctest/doctest.h>

#include "recorder/device_memory/memory.h"
#include "recorder/device_memory/pytorch.h"
#include "recorder/devices/pytorch.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/failures.h"
#include "recorder/state/request.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::g_bundles;
using doubles::t_module;
using doubles::t_stack;
using recorder::DeviceKey;
using recorder::DeviceKind;
using session::Failure;
using session::g_session;
using session::Vendor;

namespace {

constexpr std::uint64_t kSegments = 0x7000'0000'0000;
constexpr int kOutOfMemory = 2;

// A library on the stack of the following calls.
std::uint32_t add_module(const char* path) {
  const session::StringId name = g_session.add_string(kHook, path);
  std::uint32_t module = 0;
  REQUIRE(
      g_session.modules.append(kHook, module, [&](session::Module& entry) { entry.path = name; }));
  return module;
}

struct Fixture {
  Fixture() {
    need(Mode::sampled);
    recorder::set_torch_present();
    static const std::uint32_t allocator = add_module("/opt/torch/lib/libc10_cuda.so");
    static const std::uint32_t first = recorder::describe_device(kHook, {Vendor::cuda, 0, {}, {}});
    device = first;
    t_module = allocator;
    t_stack = ++g_stacks;
    recorder::reset_failures_after_fork(kHook);
    // Clears the pending failures of earlier cases.
    report(0x10, 512);
    report(0x10, -512);
    g_bundles = {};
    base = g_session.failures.size();
  }
  ~Fixture() { t_module = 0; }

  std::uint32_t entries() const { return g_session.failures.size() - base; }
  Failure& entry(std::uint32_t i) const { return g_session.failures.at(base + i); }

  void report(std::uint64_t address, std::int64_t change) const {
    recorder::on_torch_memory(
        kHook, {Api::reportMemoryUsageToProfiler, address, change, 10 * kMiB, 40 * kMiB, device});
  }
  void give_up(std::int64_t bytes, std::uint64_t allocated = 10 * kMiB) const {
    recorder::on_torch_failure(
        kHook, {Api::reportOutOfMemoryToProfiler, 0, bytes, allocated, 40 * kMiB, device});
  }
  void fail_request(std::uint64_t bytes) const {
    recorder::Request request{Space::cuda, Api::cuMemAlloc, bytes};
    request.device = device;
    recorder::on_failure(kHook, request, kOutOfMemory, recorder::FailedBy::system);
  }
  void give(DeviceKey what, std::uint64_t key, std::uint64_t bytes) const {
    const DeviceKind kind = what == DeviceKey::address ? DeviceKind::block : DeviceKind::none;
    recorder::on_device_allocate(kHook,
                                 {Api::cuMemAlloc, {Vendor::cuda, what, key}, kind, bytes, device});
  }
  void take(DeviceKey what, std::uint64_t key) const {
    recorder::on_device_free(kHook, Api::cuMemFree, {Vendor::cuda, what, key});
  }
  std::uint64_t largest() const { return recorder::largest_torch_piece(g_session.view(), device); }

  static inline std::uint32_t g_stacks = 5000;
  std::uint32_t device = 0;
  std::uint32_t base = 0;
};

}  // namespace

TEST_CASE("a tensor and its heap block share an address without hiding each other") {
  Fixture f;
  const auto torch = totals(Space::torch), heap = totals(Space::heap);
  allocate(0xa000'0000, kMiB);
  f.report(0xa000'0000, kMiB);
  CHECK(totals(Space::torch).live_bytes - torch.live_bytes == kMiB);
  release(0xa000'0000, kMiB);
  CHECK(totals(Space::heap).live_bytes == heap.live_bytes);
  CHECK(totals(Space::torch).live_bytes - torch.live_bytes == kMiB);
  f.report(0xa000'0000, -static_cast<std::int64_t>(kMiB));
  CHECK(totals(Space::torch).live_bytes == torch.live_bytes);
  CHECK(totals(Space::torch).freed_count - torch.freed_count == 1);
  CHECK(holders_agree());
}

TEST_CASE("a failure that a retry overcomes gets one bundle, with that outcome") {
  Fixture f;
  f.fail_request(100 * kMiB);
  CHECK(f.entries() == 1);
  CHECK(g_bundles.written == 0);
  f.give(DeviceKey::address, kSegments, 100 * kMiB);  // perhaps a part of it: not settled yet
  CHECK(g_bundles.written == 0);
  f.report(kSegments, 100 * kMiB);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.last.failure == f.base);
  CHECK(g_bundles.last.outcome == OutcomeKind::recovered);
  recorder::report_last_failure(kHook, 3);
  CHECK(g_bundles.written == 1);
  f.report(kSegments, -100 * static_cast<std::int64_t>(kMiB));
  f.take(DeviceKey::address, kSegments);
}

TEST_CASE("a final failure gets one bundle, with the last figures") {
  Fixture f;
  f.fail_request(100 * kMiB);
  t_stack = ++Fixture::g_stacks;
  f.fail_request(100 * kMiB);  // the retry, from another line of the allocator
  CHECK(g_bundles.written == 0);
  f.give_up(100 * kMiB, 7 * kMiB);
  CHECK(g_bundles.written == 1);
  CHECK(f.entries() == 2);
  CHECK(g_bundles.last.failure == f.base + 1);
  CHECK(g_bundles.last.outcome == OutcomeKind::running);
  CHECK(f.entry(1).device.torch_allocated_bytes == 7 * kMiB);
  CHECK(f.entry(0).device.torch_allocated_bytes == 10 * kMiB);  // the figure before the failure
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 1);
}

TEST_CASE("a final failure after harmless ones is reported") {
  Fixture f;
  for (int i = 0; i < 3; ++i) {
    f.fail_request(kMiB);
    f.report(0x20, 512);
    f.report(0x20, -512);
  }
  CHECK(g_bundles.written == 1);
  CHECK(f.entry(0).repeats == 2);
  recorder::report_last_failure(kHook, 3);
  CHECK(g_bundles.written == 1);
  f.fail_request(kMiB);
  f.give_up(kMiB);
  CHECK(g_bundles.written == 2);
  CHECK(g_bundles.last.failure == f.base + 1);
  CHECK(g_bundles.last.outcome == OutcomeKind::running);
  f.fail_request(kMiB);
  f.give_up(kMiB);
  CHECK(g_bundles.written == 2);  // a repeat
  CHECK(f.entry(1).repeats == 1);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 2);
}

TEST_CASE("a failed call by other code is reported at once, and at the end if it repeats") {
  Fixture f;
  t_module = 0;
  f.fail_request(kMiB);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.completed == 0);
  f.give(DeviceKey::address, kSegments, kMiB);
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
  f.take(DeviceKey::address, kSegments);
  f.fail_request(kMiB);
  CHECK(g_bundles.written == 1);
  recorder::report_last_failure(kHook, 3);
  CHECK(g_bundles.written == 2);
  CHECK(g_bundles.last.outcome == OutcomeKind::exited);
}

TEST_CASE("a failure without a follow-up is reported at the end") {
  Fixture f;
  f.fail_request(kMiB);
  CHECK_FALSE(recorder::last_failure_reported());
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.last.outcome == OutcomeKind::exited);
}

TEST_CASE("PyTorch's own limit is reported by its report alone") {
  Fixture f;
  f.give_up(3 * kMiB);
  REQUIRE(f.entries() == 1);
  CHECK(f.entry(0).space == static_cast<std::uint8_t>(Space::torch));
  CHECK(f.entry(0).bytes == 3 * kMiB);
  CHECK(f.entry(0).device.device == f.device);
  CHECK(f.entry(0).device.torch_reserved_bytes == 40 * kMiB);
  CHECK(g_bundles.written == 1);
}

TEST_CASE("the largest free block in PyTorch's segments") {
  Fixture f;
  CHECK(f.largest() == 0);
  f.give(DeviceKey::address, kSegments, 20 * kMiB);
  f.give(DeviceKey::address, kSegments + 20 * kMiB, 8 * kMiB);    // adjacent, but another mapping
  f.give(DeviceKey::address, kSegments + 100 * kMiB, 64 * kMiB);  // not PyTorch's
  f.report(kSegments + 2 * kMiB, 4 * kMiB);
  f.report(kSegments + 13 * kMiB, 6 * kMiB);
  CHECK(f.largest() == 7 * kMiB);  // between them; 2 before the first, 1 after the last
  f.report(kSegments + 20 * kMiB, kMiB);
  CHECK(f.largest() == 7 * kMiB);
  f.report(kSegments + 2 * kMiB, -4 * static_cast<std::int64_t>(kMiB));
  CHECK(f.largest() == 13 * kMiB);

  SUBCASE("is in the evidence of a failure") {
    f.fail_request(kMiB);
    f.give_up(kMiB);
    CHECK(f.entry(0).device.torch_largest_free_bytes == 13 * kMiB);
  }
  SUBCASE("adjacent mappings are one segment") {
    f.give(DeviceKey::mapping, kSegments + 300 * kMiB, 20 * kMiB);
    f.give(DeviceKey::mapping, kSegments + 320 * kMiB, 20 * kMiB);
    f.report(kSegments + 300 * kMiB, kMiB);
    CHECK(f.largest() == 39 * kMiB);
    f.report(kSegments + 300 * kMiB, -static_cast<std::int64_t>(kMiB));
    f.take(DeviceKey::mapping, kSegments + 300 * kMiB);
    f.take(DeviceKey::mapping, kSegments + 320 * kMiB);
  }
  SUBCASE("another device's segments are ignored") {
    CHECK(recorder::largest_torch_piece(g_session.view(), f.device + 1) == 0);
  }
  f.report(kSegments + 13 * kMiB, -6 * static_cast<std::int64_t>(kMiB));
  f.report(kSegments + 20 * kMiB, -static_cast<std::int64_t>(kMiB));
  f.take(DeviceKey::address, kSegments);
  f.take(DeviceKey::address, kSegments + 20 * kMiB);
  f.take(DeviceKey::address, kSegments + 100 * kMiB);
}
