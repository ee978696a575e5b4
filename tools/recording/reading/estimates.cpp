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
  for (const auto& block : session::entries<session::LiveBlock>(view, TableId::live_blocks)) {
    if (block.address == 0 || block.holder >= found.exact_bytes.size()) continue;
    if (block.weight == 1) {
      found.exact_bytes[block.holder] += block.bytes;
    } else {
      const double stands_for = static_cast<double>(block.bytes) * block.weight;
      found.variance += stands_for * stands_for;
    }
  }
  return found;
}

// The rows' figures of one moment.
struct Moment {
  std::uint64_t HolderFigures::*bytes;
  std::uint64_t HolderFigures::*count;
  std::uint64_t total_bytes;  // of all rows, exact
};

// More than chance: there are blocks that no holder has.
bool is_by_chance(double real, double estimated, double variance) {
  constexpr double kMostSigma = 4;
  return real > 0 && estimated != 0 &&
         std::abs(real - estimated) <= kMostSigma * std::sqrt(variance);
}

void scale(std::vector<HolderFigures>& rows, const Samples& samples, const Moment& moment,
           double variance_of_byte) {
  const auto exact_part = [&](const HolderFigures& row) {
    return std::min(row.*moment.bytes, samples.exact_bytes[row.entry]);
  };
  double exact = 0, estimated = 0;
  for (const HolderFigures& row : rows) {
    if (row.space != Space::heap) continue;
    const std::uint64_t known = row.estimated ? exact_part(row) : row.*moment.bytes;
    exact += static_cast<double>(known);
    estimated += static_cast<double>(row.*moment.bytes - known);
  }
  const double real = static_cast<double>(moment.total_bytes) - exact;
  if (!is_by_chance(real, estimated, std::max(samples.variance, variance_of_byte * estimated)))
    return;
  const double by = real / estimated;
  const auto scaled = [](std::uint64_t figure, double change) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(figure) * change));
  };
  for (HolderFigures& row : rows) {
    if (row.space != Space::heap || !row.estimated || row.*moment.bytes == 0) continue;
    const std::uint64_t known = exact_part(row);
    const double change =
        (static_cast<double>(known) + static_cast<double>(row.*moment.bytes - known) * by) /
        static_cast<double>(row.*moment.bytes);
    row.*moment.bytes = scaled(row.*moment.bytes, change);
    row.*moment.count = std::max<std::uint64_t>(1, scaled(row.*moment.count, change));
  }
}

}  // namespace

void Recording::scale_estimates(std::vector<HolderFigures>& rows) const {
  if (header().mode != static_cast<std::uint8_t>(Mode::sampled) || header().dropped_events != 0)
    return;
  const Samples samples = samples_in(view_);
  scale(rows, samples,
        {&HolderFigures::live_bytes, &HolderFigures::live_count, totals(Space::heap).live_bytes},
        0);
  // Figures of the peak are those of its last step. Its samples may be gone; as many bytes stand
  // for each as there are between two on average.
  const std::uint64_t at_step =
      header().spaces[static_cast<std::size_t>(Space::heap)].peak_step_bytes;
  scale(rows, samples, {&HolderFigures::peak_bytes, &HolderFigures::peak_count, at_step},
        static_cast<double>(header().interval_bytes));
}

}  // namespace oomrec::tools::recording
