// Retention: keeps at most N bundles and at most M bytes in one directory.
//
// Counts and removes only directories with our manifest, of the user who wrote the last one: other
// users of the directory have bounds of their own. Never removes the newest, nor the one just
// written. A removal starts with a rename, so that nobody reads half a bundle. Two processes at
// once remove the same bundles, because the order depends only on the directory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/bundle.h"
#include "common/bundle/episodes.h"

namespace oomrec::bundle {

struct StoredBundle {
  EpisodeBundle episode;
  std::uint64_t bytes;
  bool is_about_memory;  // memory was short, or a kill for an unknown reason
  bool is_doubtful;      // a kill for an unknown reason
  bool just_written;     // may not be removed
  bool is_unshipped;     // others are shipped, this one is not yet
  bool is_removed;
  char name[45];
};

struct Bounds {
  std::uint64_t bundles;  // 0: no bound
  std::uint64_t bytes;
};

// The list of what has left the dump directory (tools/service/ship/ledger.h): a bundle of which
// nothing is left to ship has the line "NAME shipped". Absent, or unchanged for a week: nothing is
// shipped from here.
inline constexpr const char* kShippedFile = ".shipped";

// Of those that are still to be shipped, at most: enforce_bounds() considers only so many.
inline constexpr std::uint64_t kMostSpooled = 256;

// Sets `is_removed` until the bounds hold. Those that are still to be shipped are the spool, which
// `Bounds::bundles` does not bound. Bundles that are shipped go first; then, of both kinds, first
// verdicts that are not about memory, then kills for an unknown reason, then what tells less of an
// episode (episodes.h), then warnings that nothing followed and later episodes of a process whose
// first is present, at last the roots; of these always the oldest first. Requires episodes to be
// grouped. Pure.
void select_removals(std::span<StoredBundle> bundles, const Bounds&) noexcept;

// Whether a bundle with this verdict and trigger (as printed) is about a lack of memory.
bool is_about_memory(std::string_view verdict, std::string_view reason) noexcept;

// Applies the bounds to a directory; `written` is the name just published. If another process holds
// the lock, it does the work: never waits.
void enforce_bounds(int dump_directory, const char* written, const Bounds&, Workspace&) noexcept;

}  // namespace oomrec::bundle
