// Who made reservations grow.
//
// An allocator that reserves a GiB and fills it bit by bit makes no other call that we see. The
// holder of the reservation is the stack of its first request. So what a look finds newly touched
// belongs to the stacks that ran while resident memory grew (GrowthSamples), *growers*. Shares
// of one grower in all reservations of one holder are a sum. Not synchronized: the range table's
// lock protects it.
#pragma once

#include <cstdint>
#include <span>

#include "recorder/live/holder_table.h"

namespace oomrec::live {

class Growers {
 public:
  struct Share {
    std::uint32_t reserving, grower;  // holders
    std::uint64_t bytes;
    std::uint32_t latest_s;  // when it grew last: seconds since start
  };
  // Of what a look finds: `bytes` / all parts' `bytes`.
  struct Part {
    std::uint32_t grower;  // holder
    std::uint64_t bytes;
  };
  struct Change {
    std::uint64_t added_count = 0, removed_count = 0;  // shares, each a block of its grower
  };

  // `reserving`'s reservations have grown by `bytes`: divides them among `parts`. Without any, and
  // where a part's grower is 0 or `reserving`, they are that holder's own.
  Change grow(InHook, HolderTable&, std::uint32_t reserving, std::span<const Part> parts,
              std::uint64_t bytes, std::uint32_t now_s) noexcept;
  // So many less, of the share that grew last first.
  Change shrink(InHook, HolderTable&, std::uint32_t reserving, std::uint64_t bytes) noexcept;
  void clear() noexcept { count_ = 0; }

  // The one that grew last is the last one.
  template <class Visit>
  void for_each(Visit&& visit) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) visit(shares_[i]);
  }

 private:
  static constexpr std::uint32_t kMost = 256;

  Change remove(InHook, HolderTable&, Share&) noexcept;
  Change grow(InHook, HolderTable&, std::uint32_t reserving, std::uint32_t grower,
              std::uint64_t bytes, std::uint32_t now_s) noexcept;

  Share shares_[kMost] = {};
  std::uint32_t count_ = 0;
};

// --- Which stacks ran while memory became resident that no recorded allocation explains.
//
// Between two looks an allocator may fill hundreds of MiB of its reservation. Samples are more
// frequent (recorder/state/growth.h), but say nothing of where the memory is. So the next look
// divides what reservations have grown by among these stacks. If the process is killed before, a
// reader does: the samples are in the session, too. Not synchronized.

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
