// Decides which small blocks are recorded, and how many blocks each represents.
//
// Sample points lie on the stream of allocated bytes as a Poisson process with a mean distance of
// `interval` bytes; a block with a point in it is taken. A block counts as 16 bytes longer than it
// is, about what its header and the rounding cost: the smallest blocks are mostly that, and empty
// ones only. Its chance is p = 1 − exp(−(bytes + 16)/interval), and it counts 1/p times: as an
// integer, floor(1/p + u) with u uniform in [0, 1), which is unbiased. A Poisson process has no
// memory, so the next distance is drawn afresh from the block's end. A thread's first distance is
// drawn, too: a full interval would never sample threads that allocate little. Logarithm and
// exponential are our own: libm may not be loaded, and must not set errno.
//
// A thread that must read the clock more often than it is sampled *stops*: the distance to the next
// point is then counted down in steps, so that passes() costs the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace oomrec::recorder {

// Natural logarithm of x > 0, relative error below 1e-9.
inline double natural_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa =  // in [1, 2)
      std::bit_cast<double>((bits & 0x000f'ffff'ffff'ffffULL) | 0x3ff0'0000'0000'0000ULL);
  double base = exponent;
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    base += 1;
  }
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;  // |s| ≤ 0.172
  double sum = 0;
  for (int n = 15; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return base * 0.6931471805599453 + 2 * s * sum;
}

// 1 − exp(−x) for x ≥ 0, relative error below 1e-9, also where x is tiny.
inline double one_minus_exp(double x) noexcept {
  if (x > 40) return 1;
  int doublings = 0;
  for (; x > 0.0625; x *= 0.5) ++doublings;
  double sum = 0;  // x − x²/2! + x³/3! − …
  for (int n = 8; n >= 1; --n) sum = x / n * (1 - sum);
  for (; doublings > 0; --doublings) sum = sum * (2 - sum);  // 1−e^(−2x) = (1−e^(−x))(1+e^(−x))
  return sum;
}

// splitmix64.
class RandomNumbers {
 public:
  constexpr explicit RandomNumbers(std::uint64_t seed = 0) noexcept : state_(seed * 2 + 1) {}

  // Between 0 and 1, never exactly either.
  double next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 0.5) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

class Sampler {
 public:
  static constexpr std::uint64_t kBesides = 16;  // what each block counts besides its bytes

  void start(std::uint64_t seed, std::uint64_t interval) noexcept {
    random_ = RandomNumbers{seed};
    rest_ = 0;
    step_ = 0;
    countdown_ = distance(interval);
  }

  // From now on passes() fails after so many bytes at the latest; 0: only at sample points.
  void stop_each(std::uint64_t bytes) noexcept {
    if (bytes == step_) return;
    step_ = bytes;
    take_step();
  }
  bool stops() const noexcept { return step_ != 0; }

  // One subtraction for most blocks. True: the block contains a sample point; call weight().
  bool take(std::uint64_t bytes) noexcept {
    countdown_ -= static_cast<std::int64_t>(bytes + kBesides);
    if (countdown_ < 0) take_step();
    return countdown_ < 0;
  }

  // Whether the block contains no sample point, and no stop. True counts the block; after false
  // call take().
  bool passes(std::uint64_t bytes) noexcept {
    const std::int64_t left = countdown_ - static_cast<std::int64_t>(bytes + kBesides);
    if (left < 0) return false;
    countdown_ = left;
    return true;
  }

  // The stream gets so many bytes that no sample point lies in: the next call for a block of that
  // size, which is decided elsewhere, takes it for certain not.
  void skip(std::uint64_t bytes) noexcept {
    countdown_ += static_cast<std::int64_t>(bytes + kBesides);
  }

  // How many blocks the one just taken represents; draws the distance to the next.
  std::uint32_t weight(std::uint64_t bytes, std::uint64_t interval) noexcept {
    countdown_ = distance(interval);
    take_step();
    const double x = static_cast<double>(bytes + kBesides) / static_cast<double>(interval);
    return static_cast<std::uint32_t>(std::min(1 / one_minus_exp(x) + random_.next(), kMostWeight));
  }

 private:
  static constexpr double kMostWeight = 0xffff'ffff;  // the most blocks that one can represent

  std::int64_t distance(std::uint64_t interval) noexcept {
    return static_cast<std::int64_t>(-natural_log(random_.next()) * static_cast<double>(interval));
  }

  // Of the distance to the next sample point, counts down a step.
  void take_step() noexcept {
    countdown_ += std::exchange(rest_, 0);
    const auto step = static_cast<std::int64_t>(step_);
    if (step == 0 || countdown_ <= step) return;
    rest_ = countdown_ - step;
    countdown_ = step;
  }

  std::int64_t countdown_ = 0;
  std::int64_t rest_ = 0;  // of the distance, beyond the countdown
  std::uint64_t step_ = 0;
  RandomNumbers random_;
};

}  // namespace oomrec::recorder
