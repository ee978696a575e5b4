// Which recorded processes belong together: the closure of "started by" over what is known of them.
//
// Pids are used again: of several processes that had the pid of somebody's parent it is the one
// that started last before the child. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace oomrec::bundle {

// In the order in which they are listed; `relative`: another one that has an ancestor in common;
// `none`: not of the group.
#define OOMREC_RELATIONS(X) X(self) X(parent) X(ancestor) X(child) X(descendant) X(relative) X(none)
#define X(name) name,
enum class Relation : std::uint8_t { OOMREC_RELATIONS(X) };
#undef X
std::string_view name_of(Relation) noexcept;

// A recorded process, and where it is recorded.
struct Kin {
  std::int32_t pid;
  std::int32_t parent_pid;
  std::uint64_t start_ticks;     // of the process
  std::uint64_t recorded_since;  // realtime, of the recording in `session`
  char session[96];              // its file's name; empty: there is none
  char bundle[47];               // the name of its latest bundle; empty: there is none
  Relation relation;             // to the first of them all
};

// Sets everybody's relation to all[0], which is itself.
void relate(std::span<Kin> all) noexcept;

}  // namespace oomrec::bundle
