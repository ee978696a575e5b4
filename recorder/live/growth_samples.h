// Which stacks ran while memory became resident that no recorded allocation explains.
//
// Between two looks an allocator may fill hundreds of MiB of its reservation. Samples are more
// frequent (recorder/state/growth.h), but say nothing of where the memory is. So the next look
// divides what reservations have grown by among these stacks. If the process is killed before, a
// reader does: the samples are in the session, too. Not synchronized.
#pragma once

#include <cstdint>
#include <span>

#include "recorder/live/growers.h"

namespace oomrec::live {

// What of resident memory's changes the changes of live bytes do not explain.
class Unexplained {
 public:
  // Since the last call: more bytes than it explains, or fewer. New live bytes may become resident
  // in the next moments, too; of freed ones, the allocator may keep the pages.
  std::int64_t next(std::int64_t resident_change, std::int64_t live_change,
                    std::uint64_t now_ns) noexcept;

 private:
  std::int64_t untouched_bytes_ = 0;  // lately obtained
  std::uint64_t obtained_ns_ = 0;
};

class GrowthSamples {
 public:
  using Sample = Growers::Part;

  // The stack of `grower` ran when `bytes` more were resident.
  void add(std::uint32_t grower, std::uint64_t bytes) noexcept;
  // So many were given back. Most memory lives briefly: those of the latest samples, as in Growers.
  void shrink(std::uint64_t bytes) noexcept;
  void clear() noexcept { count_ = 0; }

  // One for each stack, the one that grew last is the last one.
  std::span<const Sample> all() const noexcept { return {samples_, count_}; }

  static constexpr std::uint32_t kMost = 32;

 private:
  void remove(std::uint32_t at) noexcept;

  Sample samples_[kMost] = {};
  std::uint32_t count_ = 0;
};

}  // namespace oomrec::live
