// Retention: keeps at most N bundles and at most M bytes in one directory.
//
// Counts and removes only directories with our manifest; never the newest, nor the one just
// written. A removal starts with a rename, so that nobody reads half a bundle. Two processes at
// once remove the same bundles, because the order depends only on the directory.
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
  std::uint32_t process_bundle;  // number within the process, from 1
  std::uint32_t number;          // NNN of its name
  bool is_about_memory;          // memory was short, or a kill for an unknown reason
  bool is_doubtful;              // a kill for an unknown reason
  bool just_written;             // may not be removed
  bool is_removed;
  char name[45];
};

struct Bounds {
  std::uint64_t bundles;  // 0: no bound
  std::uint64_t bytes;
};

// Sets `is_removed` until the bounds hold. First go verdicts that are not about memory, then kills
// for an unknown reason, then later bundles of a process whose first is present; of these always
// the oldest first. Pure.
void select_removals(std::span<StoredBundle> bundles, const Bounds&) noexcept;

// Whether a bundle with this verdict and trigger (as printed) is about a lack of memory.
bool is_about_memory(std::string_view verdict, std::string_view reason) noexcept;

// Applies the bounds to a directory; `written` is the name just published. If another process holds
// the lock, it does the work: never waits.
void enforce_bounds(int dump_directory, const char* written, const Bounds&, Workspace&) noexcept;

// The value of `key` in a manifest, without quotes; empty if missing. A manifest's keys are unique
// and quotes in its strings are escaped, so no parser is needed.
std::string_view manifest_value(std::string_view manifest, std::string_view key) noexcept;

}  // namespace oomrec::bundle
