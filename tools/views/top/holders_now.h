// What the holders of a session hold now, and how fast each of them grows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::views {

struct HolderNow {
  std::uint32_t node = 0;   // 0: not to be read
  std::uint16_t group = 0;  // of its thread, or its rank in a job's: an index in groups()
  Space space = Space::heap;
  std::uint64_t live_bytes = 0, live_count = 0;
  double growth = 0;  // bytes a second, over the last seconds
};

class HoldersNow {
 public:
  // Reads them all. `now_ns`: of a steady clock; growth is known from the second time on. Cost: a
  // few nanoseconds a holder, and a walk along the stack of one that is new.
  void refresh(const recording::Recording&, std::uint64_t now_ns);

  const std::vector<HolderNow>& rows() const { return rows_; }        // by entry in `holders`
  const std::vector<std::string>& groups() const { return groups_; }  // names; 0: none, ""
  bool has(Space space) const { return spaces_[static_cast<std::size_t>(space)]; }

 private:
  struct Held {
    std::uint64_t bytes = 0, count = 0;
  };
  void meet(const recording::Recording&, std::uint64_t entry, const session::Holder&);
  std::uint16_t group_of(const recording::Recording&, std::uint32_t node);

  std::vector<HolderNow> rows_;
  std::vector<Held> held_;  // of this refresh
  std::vector<std::string> groups_{std::string{}};
  std::unordered_map<std::uint64_t, std::uint16_t> group_ids_;  // by outermost frame
  bool spaces_[kSpaceCount] = {};
  std::uint64_t first_ns_ = 0, before_ns_ = 0;
};

}  // namespace oomrec::tools::views
