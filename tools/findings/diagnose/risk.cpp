#include "tools/findings/diagnose/risk.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/text.h"

namespace oomrec::tools::findings {

void RiskFigures::add(const processes::MemorySample& sample) {
  allocated_bytes = sample.allocated_bytes;
  reserved_bytes = sample.reserved_bytes;
  peak_bytes = std::max(peak_bytes, sample.allocated_bytes);
  total_bytes = sample.total_bytes.value_or(0);
  if (const double ratio = sample.bound.percent() / 100; ratio >= utilization_ratio) {
    utilization_ratio = ratio;
    bound = sample.bound.name;
  }
  if (sample.inactive_bytes && sample.reserved_bytes != 0)
    fragmentation_ratio =
        std::max(fragmentation_ratio, static_cast<double>(*sample.inactive_bytes) /
                                          static_cast<double>(sample.reserved_bytes));
}

std::vector<std::string> RiskFigures::findings() const {
  std::vector<std::string> found;
  if (oom_occurred())
    found.push_back(fmt::format("memory ran out: {}", plural(ooms, "time", "times")));
  if (high_utilization())
    found.push_back(fmt::format("{} of the {} is in use", percent_text(utilization_ratio), bound));
  if (fragmented())
    found.push_back(
        fmt::format("{} of the reserved memory is inactive", percent_text(fragmentation_ratio)));
  return found;
}

std::vector<std::string> RiskFigures::suggestions() const {
  std::vector<std::string> texts;
  if (oom_occurred())
    texts.emplace_back(
        "See why with `oomrec show`. If there is no bundle, run the program with the recorder: "
        "oomrec run -- PROGRAM");
  if (high_utilization())
    texts.emplace_back(
        "Keep 15 % free: use a smaller batch or fewer processes, or raise the limit.");
  if (fragmented())
    texts.emplace_back(
        "Free caches between phases; for PyTorch try "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
  return texts;
}

}  // namespace oomrec::tools::findings
