// Sampling is unbiased, alone and in holders' figures. Also rate limit, peak and timeline in
// isolation.
#include "recorder/state/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "recorder/failures/bundle_scheduler.h"
#include "recorder/state/thread_state.h"
#include "recorder/state/time_line.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec::recorder;
using namespace oomrec::running;
using namespace oomrec;
using doubles::t_stack;

// --- Sampling is unbiased for all sizes. Also rate limit, peak and timeline in isolation

namespace {

struct Estimate {
  double bytes = 0, count = 0;
};

// The estimate for `blocks` blocks of `bytes`.
Estimate sample(std::uint64_t seed, std::uint64_t bytes, int blocks, std::uint64_t interval) {
  Sampler sampler;
  sampler.start(seed, interval);
  Estimate estimate;
  for (int i = 0; i < blocks; ++i) {
    if (!sampler.take(bytes)) continue;
    const double weight = sampler.weight(bytes, interval);
    estimate.count += weight;
    estimate.bytes += weight * static_cast<double>(bytes);
  }
  return estimate;
}

}  // namespace

TEST_CASE("own logarithm and exponential agree with libm") {
  for (double x = 1e-16; x < 1e6; x *= 1.37)
    CHECK(natural_log(x) == doctest::Approx(std::log(x)).epsilon(1e-9));
  for (double x = 1e-9; x < 60; x *= 1.21)
    CHECK(one_minus_exp(x) == doctest::Approx(-std::expm1(-x)).epsilon(1e-9));
}

TEST_CASE("stops change nothing about what is sampled") {
  constexpr std::uint64_t kInterval = 64 * 1024, kStep = 1000;
  Sampler plain, stopping;
  plain.start(7, kInterval);
  stopping.start(7, kInterval);
  std::uint64_t since_stop = 0, samples = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 10'000 == 0) {
      stopping.stop_each(i / 10'000 % 2 == 0 ? kStep : 0);
      since_stop = 0;
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(i) * 37 % 300;
    const bool is_sampled = plain.take(bytes);
    const bool passes = stopping.passes(bytes);
    since_stop = passes ? since_stop + bytes + Sampler::kBesides : 0;
    if (stopping.stops()) CHECK(since_stop <= kStep);
    REQUIRE((!passes && stopping.take(bytes)) == is_sampled);
    if (!is_sampled) continue;
    ++samples;
    CHECK(plain.weight(bytes, kInterval) == stopping.weight(bytes, kInterval));
  }
  CHECK(samples > 100);
}

TEST_CASE("the mean over many threads is unbiased, also for threads that allocate little") {
  constexpr std::uint64_t kInterval = 512 * 1024;
  for (const std::uint64_t bytes : {16u, 100u, 1000u, 9000u, 60'000u}) {
    CAPTURE(bytes);
    // 4 MiB, 8 intervals, in each of 6,000 threads: an error of 1/√(8 × 6,000) ≈ 0.5 % is expected.
    const int blocks = static_cast<int>((4 << 20) / bytes);
    Estimate sum;
    constexpr int kSeeds = 6'000;
    const int seeds = bytes == 16 ? kSeeds / 4 : kSeeds;
    for (int seed = 0; seed < seeds; ++seed) {
      const Estimate one =
          sample(static_cast<std::uint64_t>(seed) * 977 + 5, bytes, blocks, kInterval);
      sum.bytes += one.bytes;
      sum.count += one.count;
    }
    CHECK(sum.count / (static_cast<double>(blocks) * seeds) == doctest::Approx(1).epsilon(0.03));
    CHECK(sum.bytes / (static_cast<double>(blocks) * seeds * static_cast<double>(bytes)) ==
          doctest::Approx(1).epsilon(0.03));
  }
}

TEST_CASE("blocks near and above the interval keep their weight: the rounding is unbiased") {
  Estimate sum;
  for (std::uint64_t seed = 1; seed <= 4'000; ++seed)
    sum.count += sample(seed, 700, 100, 1000).count;
  CHECK(sum.count / 400'000 == doctest::Approx(1).epsilon(0.03));
}

TEST_CASE("one small allocation in each of many threads is sampled at the expected rate") {
  Estimate sum;
  for (std::uint64_t seed = 1; seed <= 400'000; ++seed)
    sum.bytes += sample(seed * 31, 8192, 1, 512 * 1024).bytes;
  CHECK(sum.bytes / (400'000.0 * 8192) == doctest::Approx(1).epsilon(0.06));
}

TEST_CASE("empty blocks are sampled too") {
  double count = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) count += sample(seed, 0, 100'000, 1024).count;
  CHECK(count / (200 * 100'000.0) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("bundles: three at once, then after fifty times the writing time, at most twenty") {
  BundleRate rate;
  std::uint64_t now = 1'000;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(rate.due(now));
    rate.ended(now, now + 20);
    now += 20;
  }
  CHECK_FALSE(rate.due(now));
  CHECK_FALSE(rate.due(now + 50 * 20 - 1));
  CHECK(rate.due(now + 50 * 20));

  now += 1000;
  rate.ended(now, now + 400);  // a slow disk makes the pause longer
  now += 400;
  CHECK_FALSE(rate.due(now + 50 * 400 - 1));
  CHECK(rate.due(now + 50 * 400));

  std::uint32_t written = 4;
  for (; rate.due(now + 1'000'000); ++written) {
    now += 1'000'000;
    rate.ended(now, now + 1);
  }
  CHECK(written == 19);
  CHECK(rate.due_as_last_chance());
  rate.ended(now, now + 1);
  CHECK_FALSE(rate.due_as_last_chance());
}

TEST_CASE_TEMPLATE("a time line keeps its size and its even spacing", Line, TimeLine<1200>,
                   TimeLine<256>) {
  Line line;
  std::vector<std::uint32_t> ticks(Line::kNone);
  for (std::uint32_t tick = 0; tick < 100'000; ++tick) {
    if (!line.wants(tick)) continue;
    const std::uint32_t place = line.slot(tick);
    if (place == Line::kNone) continue;
    if (place == line.count()) line.added();
    ticks[place] = tick;
  }
  REQUIRE(line.count() == Line::kNone);
  const std::set<std::uint32_t> sorted(ticks.begin(), ticks.end());
  CHECK(sorted.size() == Line::kNone);
  CHECK(*sorted.begin() == 0);
  CHECK(*sorted.rbegin() > 100'000 - 2 * line.spacing());
  // Every multiple of the spacing is kept, so no gap is wider.
  for (std::uint32_t tick = 0; tick + line.spacing() < 100'000; tick += line.spacing())
    REQUIRE(sorted.count(tick) == 1);
}

// --- Holders' figures in sampled mode are unbiased, with the variance of a Poisson process

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
