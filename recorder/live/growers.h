// Who made reservations grow.
//
// An allocator that reserves a GiB and fills it bit by bit makes no other call that we see. The
// holder of the reservation is the stack of its first request. So what a look finds newly touched
// belongs to the stacks that ran while resident memory grew (growth_samples.h), *growers*. Shares
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

}  // namespace oomrec::live
