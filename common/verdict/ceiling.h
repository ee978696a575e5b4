// A limit as it was when a request failed, compared with what the request needed. Private to this
// folder.
#pragma once

#include <span>

#include "common/verdict/parts.h"

namespace oomrec::verdict {

struct Ceiling {
  LimitKind kind;
  std::string_view name;
  std::string_view measure;  // what `used` counts
  std::uint64_t limit;       // 0: unknown or none, unless hit
  std::uint64_t used;
  std::uint64_t request;
  bool hit;
  std::uint64_t for_recorder = 0;  // what --limit-as added for the recorder's own memory

  bool in_force() const noexcept { return limit != 0 && limit != session::kUnlimited; }
  // No process is without address space or data: a descriptor was missing, or /proc.
  bool is_unread() const noexcept {
    return used == 0 && (kind == LimitKind::rlimit_as || kind == LimitKind::rlimit_data);
  }
  void add_figure(text::Text& text, std::uint64_t figure) const noexcept {
    is_count_limit(kind) ? text.count(figure) : text.size(figure);
  }
};

inline bool exceeded(std::uint64_t limit, std::uint64_t used, std::uint64_t request) noexcept {
  return limit != 0 && limit != session::kUnlimited && add(used, request) > limit;
}

// A limit on a number of things. `used` 0: unknown.
Ceiling counted(LimitKind, std::string_view name, std::string_view measure, std::uint64_t limit,
                std::uint64_t used, std::uint64_t request) noexcept;

// Returns the first limit that was hit; all that are in force become evidence.
const Ceiling* first_hit(Verdict&, std::span<const Ceiling>) noexcept;

// The limits on locked memory and on huge pages.
struct PoolCeilings {
  char pool_name[64], cgroup_name[80];
  Ceiling ceilings[3];
};
void fill_in(PoolCeilings&, const session::Failure&, std::uint64_t page_bytes) noexcept;

}  // namespace oomrec::verdict
