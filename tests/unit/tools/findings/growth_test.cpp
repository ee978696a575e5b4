// Curves of many shapes, and which of them are leaks.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tools/findings/leaks/growth.h"

using namespace oomrec::tools;

namespace {

constexpr double kMiB = 1024 * 1024;
constexpr double kSeconds = 20;

// `bytes` is a function of the part 0…1 of the time.
findings::HeldCurve curve_of(const std::function<double(double)>& bytes,
                             std::size_t moments = 120) {
  findings::HeldCurve curve;
  for (std::size_t i = 0; i < moments; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(moments - 1);
    curve.add(part * kSeconds, bytes(part));
  }
  return curve;
}

bool grows(const std::function<double(double)>& bytes) {
  return findings::growth_of(curve_of(bytes)).has_value();
}

double tooth(double part, double period) { return std::fmod(part, period) / period; }

// The number of blocks held after `part` of the time, each for `kept`: a Poisson process in its
// steady state, or one that never frees.
findings::HeldCurve sampled(double held_bytes, double sample_bytes, bool leaks, unsigned seed) {
  std::mt19937 random{seed};
  constexpr std::size_t kMoments = 120;
  constexpr double kKept = 0.1;
  std::exponential_distribution<double> gap{held_bytes / sample_bytes / kKept};
  std::vector<double> births;
  for (double at = -kKept; at < 1; at += gap(random)) births.push_back(at);
  findings::HeldCurve curve;
  for (std::size_t i = 0; i < kMoments; ++i) {
    const double part = static_cast<double>(i) / (kMoments - 1);
    double live = 0;
    for (const double birth : births)
      live += birth >= 0 - (leaks ? 0 : kKept) && birth <= part && (leaks || birth > part - kKept);
    curve.add(part * kSeconds, live * sample_bytes);
  }
  return curve;
}

}  // namespace

TEST_CASE("a steady leak is found, with its slope and fit") {
  const auto growth =
      findings::growth_of(curve_of([](double part) { return (5 + 40 * part) * kMiB; }));

  REQUIRE(growth);
  CHECK(growth->bytes == doctest::Approx(40 * kMiB));
  CHECK(growth->bytes_per_second == doctest::Approx(2 * kMiB));
  CHECK(growth->window_seconds == doctest::Approx(kSeconds));
  CHECK(growth->r_squared == doctest::Approx(1));
  CHECK(growth->steadiness == doctest::Approx(1));
}

TEST_CASE("leaks of many shapes") {
  CHECK(grows([](double part) { return kMiB * part; }));  // a slow one
  // In eight steps.
  CHECK(grows([](double part) { return std::floor(part * 8) * 8 * kMiB; }));
  // On top of what is loaded first.
  CHECK(grows([](double part) { return (100 * std::min(1.0, part * 10) + 10 * part) * kMiB; }));
  // With buffers that come and go ten times.
  CHECK(grows([](double part) { return (30 * part + 10 * tooth(part, 0.1)) * kMiB; }));
  // From a third of the time on.
  CHECK(grows([](double part) { return 50 * std::max(0.0, part - 0.33) * kMiB; }));
  // In the last quarter only.
  CHECK(grows([](double part) { return 200 * std::max(0.0, part - 0.74) * kMiB; }));
  // Faster and faster.
  CHECK(grows([](double part) { return 40 * part * part * kMiB; }));
  // With a temporary buffer at every seventh moment.
  int moment = 0;
  CHECK(grows([&](double part) { return (20 * part + (++moment % 7 == 0 ? 30 : 0)) * kMiB; }));
}

TEST_CASE("temporary buffers do not change the slope of a leak") {
  int moment = 0;
  const auto growth = findings::growth_of(
      curve_of([&](double part) { return (20 * part + (++moment % 7 == 0 ? 300 : 0)) * kMiB; }));
  REQUIRE(growth);
  CHECK(growth->bytes_per_second == doctest::Approx(kMiB).epsilon(0.05));
}

TEST_CASE("curves that are not leaks") {
  CHECK_FALSE(grows([](double) { return 500 * kMiB; }));
  // Warm-up.
  CHECK_FALSE(grows([](double part) { return 100 * std::min(1.0, part * 4) * kMiB; }));
  CHECK_FALSE(grows([](double part) { return 100 * std::min(1.0, part * 1.6) * kMiB; }));
  // A cache that levels off exponentially.
  for (const double times : {2.7, 4.0, 8.0})
    CHECK_FALSE(grows([&](double part) { return 100 * (1 - std::exp(-part * times)) * kMiB; }));
  // Grown, then freed.
  CHECK_FALSE(grows([](double part) { return part < 0.9 ? 100 * part * kMiB : 0; }));
  CHECK_FALSE(grows([](double part) { return (part < 0.5 ? part : 1 - part) * 100 * kMiB; }));
  // One step, and two.
  CHECK_FALSE(grows([](double part) { return part < 0.05 ? 0 : 500 * kMiB; }));
  CHECK_FALSE(grows([](double part) { return part < 0.9 ? 0 : 500 * kMiB; }));
  CHECK_FALSE(grows([](double part) { return (part < 0.3 ? 1 : part < 0.7 ? 2 : 3) * 9 * kMiB; }));
  // A buffer that doubles until it is large enough.
  CHECK_FALSE(grows([](double part) { return std::min(64.0, std::exp2(part * 20)) * kMiB; }));
  // Too little.
  CHECK_FALSE(grows([](double part) { return 100e3 * part; }));
  CHECK_FALSE(grows([](double part) { return (1000 + part) * kMiB; }));
}

TEST_CASE("a sawtooth is not a leak, with any period and any end") {
  unsigned rounds = 0;
  for (double period = 0.05; period < 1.0; period += 0.05) {
    for (double phase = 0; phase < 1; phase += 0.1, ++rounds) {
      CAPTURE(period);
      CAPTURE(phase);
      CHECK_FALSE(grows(
          [&](double part) { return (10 + 50 * tooth(part + phase * period, period)) * kMiB; }));
    }
  }
  CHECK(rounds >= 150);
}

TEST_CASE("fewer than eight moments are not enough") {
  const auto linear = [](double part) { return 100 * part * kMiB; };
  CHECK_FALSE(findings::growth_of(curve_of(linear, 7)));
  CHECK(findings::growth_of(curve_of(linear, 8)));
  CHECK_FALSE(findings::growth_of({}));
}

TEST_CASE("random error of sampling is not a leak; a significant leak is found") {
  constexpr double kSample = 512 * 1024;
  unsigned found = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    for (const double held : {1.0, 4.0, 16.0, 64.0})
      found += findings::growth_of(sampled(held * kMiB, kSample, false, seed), kSample).has_value();
  }
  CHECK(found <= 4);  // of 800
  unsigned missed = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    missed += !findings::growth_of(sampled(2.5 * kMiB, kSample, true, seed), kSample).has_value();
  CHECK(missed <= 5);  // of 100 leaks of 25 MiB each
}

TEST_CASE("bytes retained since a part of the time") {
  CHECK(findings::retained_since({}, 0.5) == 0);
  CHECK(findings::retained_since(curve_of([](double part) { return 10 * part; }), 0.5) ==
        doctest::Approx(5));
  const auto levels_off = [](double part) { return part < 0.5 ? 10 * part : 5; };
  CHECK(findings::retained_since(curve_of(levels_off), 0.5) == doctest::Approx(0).epsilon(0.1));
  CHECK(findings::retained_since(curve_of(levels_off), 0.25) == doctest::Approx(2.5).epsilon(0.1));
  CHECK(findings::retained_since(curve_of([](double part) { return 1 - part; }), 0.5) ==
        doctest::Approx(0));
}

TEST_CASE("significant differences between numbers of samples") {
  CHECK(findings::is_significant(0, 13 * 100, 100));
  CHECK_FALSE(findings::is_significant(0, 12 * 100, 100));
  CHECK_FALSE(findings::is_significant(100 * 100, 140 * 100, 100));
  CHECK(findings::is_significant(160 * 100, 100 * 100, 100));
}
