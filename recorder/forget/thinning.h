// Thins live samples that do not fit into the recording: of those that stand for less than a bound,
// some go, and the others stand for as much as the bound. What a holder is estimated to have stays
// the same on average, and samples that stand for more stay as they are.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/live/block_hash.h"

namespace oomrec::recorder {

class Thinning {
 public:
  // `is_full`: there was no memory; else there will be none soon.
  void begin(bool is_full) noexcept {
    *this = {};
    is_full_ = is_full;
  }

  // A part of it. True: that was the last one. From then on samples are no finer than the bound.
  bool next(InHook) noexcept;
  bool has_thinned() const noexcept { return bound_ != 0; }
  // The largest interval at which what there is has enough samples, in bytes.
  std::uint64_t coarsest() const noexcept;

 private:
  enum class Pass : std::uint8_t { weighing, thinning };
  static constexpr std::uint32_t kPowers = 64;

  void choose_bound() noexcept;
  void weigh(InHook, std::uint32_t end) noexcept;
  void thin(InHook, std::uint32_t end) noexcept;
  std::uint32_t weight_of(const live::Block&) const noexcept;

  bool is_full_ = false;
  Pass pass_ = Pass::weighing;
  std::uint32_t at_ = 1;  // the next block of the table
  // Samples that stand for 2^(i−1) … 2^i − 1 bytes each, and for how many together.
  std::uint32_t samples_[kPowers]{};
  double bytes_[kPowers]{};
  std::uint64_t bound_ = 0;  // bytes; 0: there are so few that nothing is thinned
};

}  // namespace oomrec::recorder
