// Holders' figures in sampled mode are unbiased, with the variance of a Poisson process.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;

namespace {

constexpr double kInterval = 512 * 1024;

struct Errors {
  std::vector<double> relative;

  double mean() const {
    double sum = 0;
    for (const double error : relative) sum += error;
    return sum / static_cast<double>(relative.size());
  }
  double deviation() const {
    double sum = 0;
    for (const double error : relative) sum += (error - mean()) * (error - mean());
    return std::sqrt(sum / static_cast<double>(relative.size() - 1));
  }
};

// Seeds the thread's sampling.
void seed_this_thread(std::uint64_t seed) {
  allocate(0x10, 1);
  release(0x10, 1);
  REQUIRE(recorder::t_thread != nullptr);
  recorder::t_thread->sampler.start(seed, static_cast<std::uint64_t>(kInterval));
}

double held_bytes(std::uint32_t stack) {
  const session::Holder* const holder = holder_of(stack, Space::heap);
  return holder != nullptr ? static_cast<double>(holder->live_bytes) : 0;
}

constexpr std::uint64_t kDistance = 1 << 16;
std::uint64_t address_of(std::uint64_t block) { return 0x10'0000'0000 + block * kDistance; }

}  // namespace

TEST_CASE("a holder of 50 MiB of small blocks: no bias, and the expected variance") {
  need(Mode::sampled);
  for (const std::uint64_t bytes : {500u, 5000u, 50'000u}) {
    CAPTURE(bytes);
    // Half of the blocks are freed again, interleaved with another holder's blocks.
    const auto blocks = 50 * kMiB / bytes;
    const double held = static_cast<double>(blocks * usable(bytes));
    Errors errors;
    for (std::uint64_t run = 0; run < 100; ++run) {
      seed_this_thread(run * 977 + bytes);
      const std::uint32_t stack = 1000 + static_cast<std::uint32_t>(bytes);
      for (std::uint64_t i = 0; i < 2 * blocks; ++i) {
        t_stack = i % 2 == 0 ? stack : 7;
        allocate(address_of(2 * i), bytes);
        t_stack = stack;
        allocate(address_of(2 * i + 1), bytes);
        release(address_of(2 * i + 1), bytes);
      }
      errors.relative.push_back(held_bytes(stack) / held - 1);
      for (std::uint64_t i = 0; i < 2 * blocks; ++i) release(address_of(2 * i), bytes);
      REQUIRE(held_bytes(stack) == 0);
    }

    // A block is sampled with probability p and then counts 1/p times.
    const double p = -std::expm1(-static_cast<double>(bytes) / kInterval);
    const double expected = std::sqrt((1 - p) / p / static_cast<double>(blocks));
    CHECK(expected == doctest::Approx(std::sqrt(kInterval / held)).epsilon(0.06));
    CHECK(std::abs(errors.mean()) < 0.03);
    CHECK(errors.deviation() > 0.8 * expected);
    CHECK(errors.deviation() < 1.25 * expected);
  }
}

TEST_CASE("short-lived threads count, each with its own sampling distance") {
  need(Mode::sampled);
  constexpr std::uint64_t kThreads = 4000;
  constexpr std::uint64_t kBlocks = 64;
  constexpr std::uint64_t kBytes = 1024;
  for (std::uint64_t number = 0; number < kThreads; ++number) {
    std::thread{[&] {
      t_stack = 21;
      for (std::uint64_t i = 0; i < kBlocks; ++i) {
        allocate(address_of(0x1000'0000 + number * kBlocks + i), kBytes);
      }
    }}.join();
  }

  // Threads have random seeds here, so this is one draw: it misses five standard deviations once in
  // two million runs.
  const double all = kThreads * kBlocks * kBytes;
  CHECK(std::abs(held_bytes(21) / all - 1) < 5 * std::sqrt(kInterval / all));
}
