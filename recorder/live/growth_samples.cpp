#include "recorder/live/growth_samples.h"

#include <algorithm>

namespace oomrec::live {

std::int64_t Unexplained::next(std::int64_t resident_change, std::int64_t live_change,
                               std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t kFillingNs = 250'000'000;
  if (now_ns > obtained_ns_ + kFillingNs) untouched_bytes_ = 0;
  const std::int64_t obtained = std::max<std::int64_t>(live_change, 0);
  if (obtained != 0) obtained_ns_ = now_ns;
  if (resident_change < 0) {
    untouched_bytes_ = std::max<std::int64_t>(untouched_bytes_ + live_change, 0);
    return std::min<std::int64_t>(resident_change - std::min<std::int64_t>(live_change, 0), 0);
  }
  const std::int64_t explained = std::min(resident_change, untouched_bytes_ + obtained);
  untouched_bytes_ += live_change - explained;
  untouched_bytes_ = std::max<std::int64_t>(untouched_bytes_, 0);
  return resident_change - explained;
}

void GrowthSamples::remove(std::uint32_t at) noexcept {
  std::copy(samples_ + at + 1, samples_ + count_, samples_ + at);
  --count_;
}

void GrowthSamples::add(std::uint32_t grower, std::uint64_t bytes) noexcept {
  Sample* const end = samples_ + count_;
  Sample* const same =
      std::find_if(samples_, end, [&](const Sample& one) noexcept { return one.grower == grower; });
  if (same != end) {
    bytes += same->bytes;
    remove(static_cast<std::uint32_t>(same - samples_));
  } else if (count_ == kMost) {  // the others share what the smallest had
    const Sample* const smallest = std::min_element(
        samples_, end, [](const Sample& a, const Sample& b) noexcept { return a.bytes < b.bytes; });
    remove(static_cast<std::uint32_t>(smallest - samples_));
  }
  samples_[count_++] = {grower, bytes};
}

void GrowthSamples::shrink(std::uint64_t bytes) noexcept {
  while (bytes != 0 && count_ != 0) {
    Sample& latest = samples_[count_ - 1];
    const std::uint64_t part = std::min(bytes, latest.bytes);
    bytes -= part;
    latest.bytes -= part;
    if (latest.bytes == 0) --count_;
  }
}

}  // namespace oomrec::live
