#include "tools/print/duration.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "tools/base/text.h"

namespace oomrec::tools::print {
namespace {

constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr double kLongest = 3652.5 * kDay;

// A duration in two units. The second is left out if it is zero.
std::string in_two_units(std::uint64_t seconds, std::uint64_t large, std::string_view word,
                         std::uint64_t small, std::string_view small_word) {
  const std::string text = fmt::format("{} {}", count_text(seconds / large), word);
  const std::uint64_t rest = seconds % large / small;
  return rest == 0 ? text : fmt::format("{} {} {}", text, rest, small_word);
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds > kLongest) return "more than 10 years";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < kHour) return in_two_units(whole, kMinute, "min", 1, "s");
  if (whole < kDay) return in_two_units(whole, kHour, "h", kMinute, "min");
  return in_two_units(whole, kDay, whole < 2 * kDay ? "day" : "days", kHour, "h");
}

}  // namespace oomrec::tools::print
