#include "tools/findings/leaks/resident_growth.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/text.h"
#include "tools/recording/reading/timeline.h"
#include "tools/sections/resident_memory.h"

namespace oomrec::tools::findings {
namespace {

using session::ResidentKind;

std::int64_t live_on_host(const recording::Moment& moment) {
  return static_cast<std::int64_t>(moment.live_bytes[static_cast<std::size_t>(Space::heap)] +
                                   moment.live_bytes[static_cast<std::size_t>(Space::map)]);
}

std::string growth_text(std::int64_t bytes) {
  return size_text(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

}  // namespace

bool ResidentGrowth::is_notable() const {
  constexpr std::int64_t kNotable = 16 << 20;
  return bytes >= kNotable && bytes - std::max<std::int64_t>(allocated_bytes, 0) >= bytes / 2;
}

std::optional<ResidentGrowth> resident_growth_of(const bundles::Source& source) {
  const recording::Recording& recording = *source.recording;
  if (!recording.has_residency()) return std::nullopt;
  const std::vector<recording::Moment> moments = recording::timeline_of(recording).moments;
  const auto first =
      std::ranges::find_if(moments, [](const auto& moment) { return moment.rss_bytes != 0; });
  const recording::ResidencyTotals& look = recording.residency();
  if (first == moments.end() || first->time_ns > look.time_ns) return std::nullopt;
  ResidentGrowth growth;
  growth.bytes = static_cast<std::int64_t>(sections::resident_bytes(look)) -
                 static_cast<std::int64_t>(first->rss_bytes);
  growth.allocated_bytes = static_cast<std::int64_t>(look.live_bytes) - live_on_host(*first);
  growth.seconds = static_cast<double>(look.time_ns - first->time_ns) / 1e9;
  return growth;
}

std::string resident_growth_text(const bundles::Source& source) {
  constexpr std::int64_t kNotablePart = 10;
  const auto growth = resident_growth_of(source);
  if (!growth || !growth->is_notable()) return {};
  std::string text = fmt::format("resident memory grew by {} in {}, and what was allocated by {}",
                                 growth_text(growth->bytes), duration_text(growth->seconds),
                                 growth_text(growth->allocated_bytes));
  for (const sections::ResidentKindName& kind : sections::resident_kinds()) {
    const bool is_outside_heap = kind.kind == ResidentKind::unheld ||
                                 kind.kind == ResidentKind::written_files ||
                                 kind.kind == ResidentKind::shared;
    const std::uint64_t bytes =
        source.recording->residency().kind_bytes[static_cast<std::size_t>(kind.kind)];
    if (is_outside_heap && static_cast<std::int64_t>(bytes) >= growth->bytes / kNotablePart)
      text += fmt::format("; {} are {}", size_text(bytes), kind.name);
  }
  return text + ".";
}

Json resident_growth_json(const bundles::Source& source) {
  const auto growth = resident_growth_of(source);
  if (!growth) return nullptr;
  return {{"growth_bytes", growth->bytes},
          {"allocated_growth_bytes", growth->allocated_bytes},
          {"seconds", growth->seconds}};
}

}  // namespace oomrec::tools::findings
