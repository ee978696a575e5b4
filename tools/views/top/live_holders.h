// What each holder of a session holds now, and how fast it grows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::views {

struct LiveHolder {
  std::uint32_t node = 0;   // 0: unreadable
  std::uint16_t group = 0;  // of its thread, or its rank in a job: an index in groups()
  Space space = Space::heap;
  std::uint64_t live_bytes = 0, live_count = 0;
  std::uint64_t weight_bytes = 0;  // what it is ranked by: what of it is resident
  double growth = 0;               // bytes per second, over the last seconds
};

class LiveHolders {
 public:
  // Reads all holders. `now_ns`: of a steady clock. Growth is known from the second call on. Cost:
  // a few nanoseconds for each holder, and a walk along the stack of each new one.
  void refresh(const recording::Recording&, std::uint64_t now_ns);

  const std::vector<LiveHolder>& rows() const { return rows_; }  // by entry in `holders`
  // Of the stacks that were forgotten: their holders and nodes are used again.
  std::uint64_t forgotten() const { return forgotten_; }
  const std::vector<std::string>& groups() const { return groups_; }  // names; 0: none, ""
  bool has(Space space) const { return spaces_[static_cast<std::size_t>(space)]; }

 private:
  struct Held {
    std::uint64_t bytes = 0, count = 0;
  };
  void add_holder(const recording::Recording&, std::uint64_t entry, const session::Holder&);
  std::uint16_t group_of(const recording::Recording&, std::uint32_t node);

  std::vector<LiveHolder> rows_;
  std::vector<Held> held_;  // of this refresh
  std::vector<std::string> groups_{std::string{}};
  std::unordered_map<std::uint64_t, std::uint16_t> group_ids_;  // by outermost frame
  bool spaces_[kSpaceCount] = {};
  std::uint64_t first_ns_ = 0, before_ns_ = 0;
  std::uint64_t forgotten_ = 0;
};

}  // namespace oomrec::tools::views
