// Analysis of series of numbers: statistics, leaks, patterns, fragmentation, the hidden gap.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "tools/findings/time_series/hidden_memory.h"
#include "tools/findings/time_series/patterns.h"
#include "tools/findings/time_series/statistics.h"

using namespace oomrec::tools;

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

findings::Series series_of(std::size_t count, const std::function<double(std::size_t)>& value,
                           double interval = 0.1) {
  findings::Series series;
  for (std::size_t i = 0; i < count; ++i) series.add(static_cast<double>(i) * interval, value(i));
  return series;
}

// Reproducible noise, 0…1.
double noise(std::size_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  return static_cast<double>(x >> 11) / 9007199254740992.0;
}

bool has(const std::vector<findings::LeakFinding>& found, findings::LeakSign sign) {
  for (const findings::LeakFinding& one : found)
    if (one.sign == sign) return true;
  return false;
}

std::vector<findings::HeldSample> held(std::size_t count,
                                       const std::function<findings::HeldSample(double)>& sample) {
  std::vector<findings::HeldSample> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(sample(static_cast<double>(i)));
  return samples;
}

}  // namespace

TEST_CASE("statistics of no values, and of one value") {
  CHECK(findings::mean_of({}) == 0);
  CHECK(findings::deviation_of({}) == 0);
  CHECK(findings::quantile_of({}, 0.5) == 0);
  CHECK(findings::quantile_of({7}, 0.25) == 7);
  CHECK(findings::fit_of({}).slope == 0);
  CHECK(findings::fit_of(series_of(1, [](auto) { return 5.0; })).p == 1);
}

TEST_CASE("statistics match the textbooks") {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  CHECK(findings::mean_of(values) == 5);
  CHECK(findings::deviation_of(values) == 2);
  CHECK(findings::quantile_of({1, 2, 3, 4}, 0.25) == doctest::Approx(1.75));
  CHECK(findings::quantile_of({4, 1, 3, 2}, 0.75) == doctest::Approx(3.25));
  CHECK(findings::correlation_of(values, values) == doctest::Approx(1));
  CHECK(findings::correlation_of(values, std::vector<double>(8, 3.0)) == 0);
  // y for x = 1…5; r and p from R's cor.test and lm.
  findings::Series series;
  const double y[] = {2.1, 3.9, 6.2, 7.8, 9.1};
  for (int i = 0; i < 5; ++i) series.add(i + 1, y[i]);
  const findings::Fit fit = findings::fit_of(series);
  CHECK(fit.slope == doctest::Approx(1.79));
  CHECK(fit.intercept == doctest::Approx(0.45));
  CHECK(fit.r == doctest::Approx(0.9958).epsilon(0.0005));
  CHECK(fit.p == doctest::Approx(0.00033).epsilon(0.02));
}

TEST_CASE("p follows Student's t-distribution") {
  // Points with r = 0.5 exactly: two values of x, two of y. t = r √(df ÷ (1 − r²)).
  const auto p_of = [](std::size_t groups) {
    findings::Series series;
    for (std::size_t i = 0; i < groups; ++i)
      for (const auto& [x, y] :
           {std::pair{0, 0}, {0, 0}, {0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 1}, {1, 1}})
        series.add(x, y);
    const findings::Fit fit = findings::fit_of(series);
    CHECK(fit.r == doctest::Approx(0.5));
    return fit.p;
  };
  CHECK(p_of(1) == doctest::Approx(0.2070).epsilon(0.001));   // 8 points
  CHECK(p_of(2) == doctest::Approx(0.0486).epsilon(0.002));   // 16 points
  CHECK(p_of(4) == doctest::Approx(0.00357).epsilon(0.005));  // 32 points
}

TEST_CASE("a series leaks if it rises, ends higher, or has an outlier") {
  const auto rising = [](double share) {
    double at = 1000;
    return series_of(101, [=](std::size_t i) mutable {
      return at += static_cast<double>(i % 100) < share * 100 ? 1 : 0;
    });
  };
  SUBCASE("more than 90 % of the steps: high") {
    const auto found = findings::leak_signs_of(rising(0.95));
    REQUIRE(has(found, findings::LeakSign::rising));
    CHECK(found.front().severity == findings::Severity::high);
  }
  SUBCASE("more than 70 %: medium") {
    const auto found = findings::leak_signs_of(rising(0.75));
    REQUIRE(has(found, findings::LeakSign::rising));
    CHECK(found.front().severity == findings::Severity::medium);
  }
  SUBCASE("70 % and less: none") {
    CHECK(!has(findings::leak_signs_of(rising(0.69)), findings::LeakSign::rising));
  }
  SUBCASE("the last five are more than 1.5 times the first five") {
    CHECK(has(findings::leak_signs_of(series_of(20, [](auto i) { return i < 10 ? 100.0 : 151.0; })),
              findings::LeakSign::not_freed));
    CHECK(
        !has(findings::leak_signs_of(series_of(20, [](auto i) { return i < 10 ? 100.0 : 150.0; })),
             findings::LeakSign::not_freed));
  }
  SUBCASE("three deviations above the mean") {
    CHECK(has(findings::leak_signs_of(series_of(20, [](auto i) { return i == 9 ? 900.0 : 100.0; })),
              findings::LeakSign::spikes));
    CHECK(!has(findings::leak_signs_of(series_of(20, [](auto i) { return i % 2 ? 900.0 : 100.0; })),
               findings::LeakSign::spikes));
  }
  SUBCASE("fewer than ten samples are not enough") {
    CHECK(findings::leak_signs_of(series_of(9, [](auto i) {
            return static_cast<double>(i * i);
          })).empty());
    CHECK(!findings::leak_signs_of(series_of(10, [](auto i) {
             return static_cast<double>(i * i);
           })).empty());
  }
  SUBCASE("a constant series does not leak") {
    CHECK(findings::leak_signs_of(series_of(50, [](auto) { return 64 * kMiB; })).empty());
    CHECK(findings::leak_signs_of(series_of(50, [](auto) { return 0.0; })).empty());
  }
}

TEST_CASE("a function leaks with three calls, of which more than 10 % add memory, 100 MiB in all") {
  using Growth = std::vector<double>;
  CHECK(findings::function_leak_of(Growth{50 * kMiB, 51 * kMiB}) == std::nullopt);
  const auto leak = findings::function_leak_of(Growth{50 * kMiB, 51 * kMiB, 0});
  REQUIRE(leak);
  CHECK(leak->severity == findings::Severity::high);
  CHECK(leak->total_bytes == 101 * kMiB);
  CHECK(leak->grown_share == doctest::Approx(2 / 3.0));
  CHECK(findings::function_leak_of(Growth{100 * kMiB, 0, 0}) == std::nullopt);  // not more
  Growth rare(20, 0.0);
  rare[0] = rare[1] = 200 * kMiB;
  CHECK(findings::function_leak_of(rare) == std::nullopt);  // 10 % of the calls, not more
  rare[2] = 1;
  CHECK(findings::function_leak_of(rare));
  CHECK(findings::function_leak_of(Growth{600 * kMiB, 600 * kMiB, -10})->severity ==
        findings::Severity::critical);
  CHECK(findings::function_leak_of(Growth{600 * kMiB, -600 * kMiB, -1}) == std::nullopt);
}

TEST_CASE("spikes exceed the third quartile by one and a half interquartile ranges") {
  const auto with_spikes = [](std::size_t count) {
    return series_of(100, [=](std::size_t i) { return i < count ? 400.0 : 100.0 + noise(i); });
  };
  CHECK(!findings::spikes_of(with_spikes(0)));
  const auto one = findings::spikes_of(with_spikes(1));
  REQUIRE(one);
  CHECK(one->count == 1);
  CHECK(one->highest_bytes == 400);
  CHECK(one->highest_at_seconds == 0);
  CHECK(one->severity() == findings::Severity::medium);
  CHECK(findings::spikes_of(with_spikes(5))->severity() == findings::Severity::critical);
  CHECK(!findings::spikes_of(series_of(9, [](auto i) { return i == 4 ? 400.0 : 100.0; })));
  // Constant except for a few bytes.
  CHECK(!findings::spikes_of(series_of(50, [](auto i) { return i == 4 ? 100.5 : 100.0; })));
}

TEST_CASE("steps are changes by more than 20 % in more than 10 % of the samples") {
  const auto stairs = [](std::size_t every) {
    return series_of(40, [=](std::size_t i) { return 100 * std::pow(1.3, i / every); });
  };
  const auto steps = findings::steps_of(stairs(5));
  REQUIRE(steps);
  CHECK(steps->count == 7);
  CHECK(steps->largest_bytes == doctest::Approx(100 * std::pow(1.3, 7) - 100 * std::pow(1.3, 6)));
  CHECK(!findings::steps_of(stairs(10)));  // 3 of 40
  CHECK(!findings::steps_of(series_of(40, [](auto i) { return i % 2 ? 119.0 : 100.0; })));
  CHECK(findings::steps_of(series_of(40, [](auto i) { return i % 2 ? 121.0 : 100.0; })));
}

TEST_CASE("a period of any shape is found, with its length, also on a trend") {
  const auto check_period = [](const findings::Series& series, double seconds) {
    const auto period = findings::period_of(series);
    REQUIRE(period);
    CHECK(period->seconds == doctest::Approx(seconds).epsilon(0.06));
    CHECK(period->correlation > 0.7);
  };
  check_period(
      series_of(200, [](auto i) { return std::sin(static_cast<double>(i) * 2 * M_PI / 20); }), 2);
  check_period(series_of(200, [](auto i) { return static_cast<double>(i % 25); }), 2.5);
  check_period(series_of(200,
                         [](auto i) {
                           return (i % 25 < 12 ? 9.0 : 0.0) + static_cast<double>(i) + noise(i);
                         }),
               2.5);
  // Thinned, it is the same.
  check_period(series_of(9000, [](auto i) { return static_cast<double>(i % 500); }), 50);
}

TEST_CASE("no period: noise, a line, a constant, a smooth curve, one step, too few samples") {
  CHECK(!findings::period_of(series_of(200, noise)));
  CHECK(!findings::period_of(series_of(200, [](auto i) { return static_cast<double>(i); })));
  CHECK(!findings::period_of(series_of(200, [](auto) { return 5.0; })));
  CHECK(!findings::period_of(series_of(200, [](auto i) { return static_cast<double>(i * i); })));
  CHECK(!findings::period_of(
      series_of(200, [](auto i) { return std::sqrt(static_cast<double>(i)); })));
  CHECK(!findings::period_of(series_of(200, [](auto i) { return i < 90 ? 1.0 : 100.0; })));
  CHECK(!findings::period_of(series_of(15, [](auto i) { return static_cast<double>(i % 4); })));
}

TEST_CASE("a trend rises significantly; it is high above 1 MiB a second") {
  const auto slope = [](double a_second) {
    return series_of(50, [=](std::size_t i) {
      return 100 * kMiB + a_second * static_cast<double>(i) * 0.1 + noise(i) * kMiB / 4;
    });
  };
  const auto trend = findings::trend_of(slope(2 * kMiB));
  REQUIRE(trend);
  CHECK(trend->severity() == findings::Severity::high);
  CHECK(trend->bytes_per_second == doctest::Approx(2 * kMiB).epsilon(0.05));
  CHECK(findings::trend_of(slope(kMiB / 2))->severity() == findings::Severity::medium);
  CHECK(!findings::trend_of(slope(-2 * kMiB)));
  CHECK(!findings::trend_of(series_of(50, noise)));
  CHECK(!findings::trend_of(series_of(9, [](auto i) { return static_cast<double>(i); })));
}

TEST_CASE("growth begins with an uninterrupted rise by 64 MiB or 10 % of the peak") {
  const auto growth = [](double step, std::size_t flat) {
    return series_of(
        30, [=](std::size_t i) { return i < flat ? 0 : step * static_cast<double>(i - flat); });
  };
  CHECK(findings::growth_began_at(growth(8 * kMiB, 11)) == doctest::Approx(1.1));
  CHECK(!findings::growth_began_at(growth(2 * kMiB, 11)));  // 36 MiB in all
  // With a peak of 10 GiB, 64 MiB are little.
  CHECK(!findings::growth_began_at(series_of(
      4, [](auto i) { return i == 0 ? 10240 * kMiB : 100 * kMiB * static_cast<double>(i); })));
  CHECK(!findings::growth_began_at({}));
}

TEST_CASE("fragmentation is the mean share of reserved memory that is not allocated") {
  const auto share = [](double allocated) {
    return findings::fragmentation_over(
        held(5, [=](double at) { return findings::HeldSample{at, allocated, 100, 100, {}, {}}; }));
  };
  CHECK(share(70).severity == findings::Severity::none);
  CHECK(share(69).severity == findings::Severity::medium);
  CHECK(share(50).severity == findings::Severity::medium);
  CHECK(share(49).severity == findings::Severity::critical);
  CHECK(share(49).mean_share == doctest::Approx(0.51));
  CHECK(findings::fragmentation_over({}).severity == findings::Severity::none);
  CHECK(findings::fragmentation_over({{0, 0, 0, 50, 100, {}}}).mean_share ==
        0);  // nothing reserved
}

TEST_CASE("the hidden gap needs 5 % of the total and three samples") {
  const auto gap = [](double hidden, std::size_t count) {
    return findings::hidden_gap_of(held(
        count, [=](double at) { return findings::HeldSample{at, 10, 10, 10 + hidden, 1000, {}}; }));
  };
  CHECK(!gap(49, 10));
  CHECK(!gap(50, 2));
  REQUIRE(gap(50, 3));
  CHECK(gap(50, 3)->findings.empty());
  CHECK(gap(50, 3)->highest_share == doctest::Approx(0.05));
  CHECK(!findings::hidden_gap_of(held(10, [](double at) {
    return findings::HeldSample{at, 10, 10, 500, {}, {}};  // unknown total
  })));
}

TEST_CASE("a gap spikes, drifts, or is like fragmentation") {
  const auto only = [](const std::vector<findings::HeldSample>& samples) {
    const auto gap = findings::hidden_gap_of(samples);
    REQUIRE(gap);
    REQUIRE(gap->findings.size() == 1);
    return gap->findings[0];
  };
  const auto spike = [&](std::size_t count) {
    return only(held(count, [](double at) {
      return findings::HeldSample{at, 10, 10, at == 3 ? 900.0 : 110.0, 1000, {}};
    }));
  };
  CHECK(spike(8).sign == findings::GapSign::transient_spike);
  CHECK(spike(8).severity == findings::Severity::medium);
  CHECK(spike(30).severity == findings::Severity::critical);

  const auto drift = [](std::size_t count, double wobble) {
    return held(count, [=](double at) {
      const double hidden = 100 + 10 * at + (static_cast<int>(at) % 2 ? wobble : -wobble);
      return findings::HeldSample{at, 10, 10, 10 + hidden, 1000, {}};
    });
  };
  CHECK(only(drift(20, 0)).sign == findings::GapSign::persistent_drift);
  CHECK(only(drift(20, 0)).severity == findings::Severity::critical);
  CHECK(only(drift(20, 38)).severity == findings::Severity::medium);
  CHECK(findings::hidden_gap_of(drift(20, 60))->findings.empty());
  CHECK(findings::hidden_gap_of(drift(4, 0))->findings.empty());

  CHECK(only(held(10, [](double at) {
          return findings::HeldSample{at, 60, 100, 200, 1000, 30};
        })).sign == findings::GapSign::fragmentation_like);
  CHECK(findings::hidden_gap_of(held(10, [](double at) {
          return findings::HeldSample{at, 60, 100, 200, 1000, 29};
        }))->findings.empty());
}
