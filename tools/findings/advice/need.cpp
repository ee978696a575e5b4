#include "tools/findings/advice/need.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tools/base/text.h"
#include "tools/print/duration.h"

namespace oomrec::tools::findings {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

}  // namespace

std::uint64_t with_quarter(std::uint64_t value) { return value + value / 4; }

std::uint64_t rounded(std::uint64_t bytes) {
  const std::uint64_t step = std::max(std::bit_floor(std::max(bytes, kMiB)) / 8, kMiB);
  return (bytes + step - 1) / step * step;
}

std::string value_text(std::uint64_t bytes) {
  return bytes % kGiB == 0 ? fmt::format("{}G", bytes / kGiB) : fmt::format("{}M", bytes / kMiB);
}

std::uint64_t needed_bytes(const AdviceFacts& facts) {
  const std::uint64_t used = is_count_limit(facts.limit.kind) ? 0 : facts.limit.used;
  return std::max(used, facts.limit.peak_bytes) + facts.request_bytes;
}

std::string growth_text(const AdviceFacts& facts) {
  const auto growing = std::find_if(facts.held.begin(), facts.held.end(),
                                    [](const SubjectFigures& held) { return held.growth; });
  if (growing == facts.held.end() || growing->growth->bytes_per_second < 1) return {};
  const Growth& growth = *growing->growth;
  if (growth.window_seconds < 60)
    return fmt::format("grew by {} in {}", size_text(static_cast<std::uint64_t>(growth.bytes)),
                       print::duration_text(growth.window_seconds));
  const double per_minute = growth.bytes_per_second * 60;
  return fmt::format("grew by {} a minute", size_text(static_cast<std::uint64_t>(per_minute)));
}

std::string trend_text(const AdviceFacts& facts) {
  const std::string growth = growth_text(facts);
  if (growth.empty()) return {};
  return fmt::format(" It {}: if that goes on, a higher limit only delays the end.", growth);
}

std::string machine_text(const AdviceFacts& facts, std::uint64_t bytes) {
  return fmt::format(
      "This machine is too small for it: it has {} of RAM{}, and the program needs about {}",
      size_text(facts.limit.ram_bytes),
      facts.limit.swap_bytes == 0
          ? ""
          : fmt::format(" and {} of swap", size_text(facts.limit.swap_bytes)),
      size_text(bytes));
}

}  // namespace oomrec::tools::findings
