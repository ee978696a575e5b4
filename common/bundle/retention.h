// Which bundles stay: at most N of them and at most M bytes in one directory.
//
// Only directories that carry our manifest are counted and removed. The newest is never removed,
// nor the one just written. A removal is a rename first, so that nobody reads half a bundle, and
// two processes at once remove the same ones: the order is a function of the directory alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/bundle.h"

namespace oomrec::bundle {

struct StoredBundle {
  std::uint64_t created;  // YYYYmmddHHMMSS
  std::uint64_t bytes;
  std::uint64_t process;         // hash of its key
  std::uint32_t process_bundle;  // its number in the process, from 1
  std::uint32_t number;          // NNN of its name
  bool is_memory;                // the verdict is that memory was short, or a kill …
  bool is_doubtful;              // … of which nobody knows the reason
  bool kept;                     // may not go: just written
  bool gone;
  char name[45];
};

struct Bounds {
  std::uint64_t bundles;  // 0: no bound
  std::uint64_t bytes;
};

// Marks as `gone` what has to go, in the order of design: verdicts that are not memory, kills of
// which nobody knows the reason, then later bundles of a process whose first is there, then the
// oldest. Pure.
void choose_victims(std::span<StoredBundle> bundles, const Bounds&) noexcept;

// Whether a bundle with this verdict and trigger (as they are printed) is about a lack of memory.
bool tells_of_memory(std::string_view verdict, std::string_view reason) noexcept;

// Applies the bounds to a directory; `written` is the name just published. Under a lock that is
// tried, never waited for: who does not get it leaves the work to its holder.
void enforce_bounds(int dump_directory, const char* written, const Bounds&, Workspace&) noexcept;

// The value of `key` in a manifest, as it stands there, quotes left out; empty when it is not
// there. Keys of a manifest are unique and quotes in strings are escaped, so no parser is needed.
std::string_view manifest_value(std::string_view manifest, std::string_view key) noexcept;

}  // namespace oomrec::bundle
