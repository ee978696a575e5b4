// Estimates of small blocks, improved by what is known exactly.
#include <cmath>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

// What sampled blocks stand for, and what the others of the same holders have.
struct Samples {
  std::vector<std::uint64_t> exact_bytes;  // by holder, of blocks that are recorded themselves
  double variance = 0;                     // of the sum of all estimates, in bytes²
};

Samples samples_in(const session::View& view) {
  Samples found{std::vector<std::uint64_t>(view.count(TableId::holders)), 0};
  session::LiveBlock block{};
  for (std::uint64_t i = 1, count = view.count(TableId::live_blocks); i < count; ++i) {
    if (!view.read(TableId::live_blocks, i, block) || block.address == 0 ||
        block.holder >= found.exact_bytes.size())
      continue;
    if (block.weight == 1) {
      found.exact_bytes[block.holder] += block.bytes;
    } else {
      const double stands_for = static_cast<double>(block.bytes) * block.weight;
      found.variance += stands_for * stands_for;
    }
  }
  return found;
}

}  // namespace

void Recording::scale_estimates(std::vector<HolderFigures>& rows) const {
  constexpr double kMostSigma = 4;
  if (header().mode != static_cast<std::uint8_t>(Mode::sampled) || header().dropped_events != 0)
    return;
  const Samples samples = samples_in(view_);
  const auto exact_part = [&](const HolderFigures& row) {
    return std::min(row.live_bytes, samples.exact_bytes[row.entry]);
  };
  double exact = 0, estimated = 0;
  for (const HolderFigures& row : rows) {
    if (row.space != Space::heap) continue;
    const std::uint64_t known = row.estimated ? exact_part(row) : row.live_bytes;
    exact += static_cast<double>(known);
    estimated += static_cast<double>(row.live_bytes - known);
  }
  const double real = static_cast<double>(totals(Space::heap).live_bytes) - exact;
  // More than chance: there are blocks that no holder has.
  if (real <= 0 || estimated == 0 ||
      std::abs(real - estimated) > kMostSigma * std::sqrt(samples.variance))
    return;
  const double scale = real / estimated;
  const auto scaled = [](std::uint64_t figure, double by) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(figure) * by));
  };
  for (HolderFigures& row : rows) {
    if (row.space != Space::heap || !row.estimated || row.live_bytes == 0) continue;
    const std::uint64_t known = exact_part(row);
    const double change =
        (static_cast<double>(known) + static_cast<double>(row.live_bytes - known) * scale) /
        static_cast<double>(row.live_bytes);
    row.live_bytes = scaled(row.live_bytes, change);
    row.live_count = std::max<std::uint64_t>(1, scaled(row.live_count, change));
    row.peak_bytes = scaled(row.peak_bytes, change);
    row.peak_count = std::max(row.live_count, scaled(row.peak_count, change));
  }
}

}  // namespace oomrec::tools::recording
