// The watermark that a program sets, for the process and for the setting thread.
#include "recorder/state/watermark.h"

#include <doctest/doctest.h>

#include <thread>

#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;

namespace {

constexpr std::uint64_t kAt = 0x1000'0000;

std::uint64_t of_process() { return recorder::watermark(kHook, recorder::WatermarkOf::process); }
std::uint64_t of_thread() { return recorder::watermark(kHook, recorder::WatermarkOf::thread); }

}  // namespace

TEST_CASE("a watermark that was never set is zero") {
  need(Mode::exact);
  allocate(kAt, kMiB);
  CHECK(of_process() == 0);
  CHECK(of_thread() == 0);
  release(kAt, kMiB);
}

TEST_CASE("the watermark is the maximum growth since it was set") {
  need(Mode::exact);
  allocate(kAt, 7 * kMiB);
  recorder::set_watermark(kHook);
  CHECK(of_process() == 0);
  allocate(kAt + 16 * kMiB, 3 * kMiB);
  allocate(kAt + 32 * kMiB, 2 * kMiB);
  release(kAt + 16 * kMiB, 3 * kMiB);
  release(kAt, 7 * kMiB);  // freeing older memory does not lower it
  CHECK(of_process() == usable(3 * kMiB) + usable(2 * kMiB));
  CHECK(of_thread() == of_process());
  recorder::set_watermark(kHook);
  CHECK(of_process() == 0);
  release(kAt + 32 * kMiB, 2 * kMiB);
}

TEST_CASE("small blocks count before their thread has published them") {
  need(Mode::exact);
  recorder::set_watermark(kHook);
  allocate(kAt, 1000);
  CHECK(of_process() == usable(1000));
  release(kAt, 1000);
}

TEST_CASE("another thread's blocks count for the process only") {
  need(Mode::exact);
  recorder::set_watermark(kHook);
  std::uint64_t in_other_thread = 1;
  std::thread other{[&] {
    allocate(kAt, 5 * kMiB);
    in_other_thread = of_thread();
    release(kAt, 5 * kMiB);
  }};
  other.join();
  CHECK(in_other_thread == 0);  // it did not set the watermark
  CHECK(of_process() >= usable(5 * kMiB));
  CHECK(of_thread() < kMiB);
}
