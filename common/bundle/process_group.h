// Which recorded processes belong together: those with a common ancestor.
//
// The kernel reuses pids. If several processes had the parent's pid, the parent is the one that
// started last before the child. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace oomrec::bundle {

// In the order of the list. `relative`: shares an ancestor; `none`: not in the group.
#define OOMREC_RELATIONS(X) X(self) X(parent) X(ancestor) X(child) X(descendant) X(relative) X(none)
#define X(name) name,
enum class Relation : std::uint8_t { OOMREC_RELATIONS(X) };
#undef X
std::string_view name_of(Relation) noexcept;

// A recorded process, its recording and its bundle.
struct RecordedProcess {
  std::int32_t pid;
  std::int32_t parent_pid;
  std::uint64_t start_ticks;     // of the process
  std::uint64_t recorded_since;  // realtime, of the recording in `session`
  char session[96];              // file name; empty: none
  char bundle[47];               // name of its latest bundle; empty: none
  Relation relation;             // to the first of all
};

// Sets each process' relation to all[0], which becomes `self`.
void set_relations(std::span<RecordedProcess> all) noexcept;

}  // namespace oomrec::bundle
