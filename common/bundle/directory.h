// The dump directory: names of bundles, the temporary directory of one being written, and its
// publication.
//
// `oom_cpu_20261121_101530_001` is written as `.oom_cpu_20261121_101530_001.partial` and renamed
// when complete. Creating that directory claims the next number of that second: only one of several
// processes succeeds, and no path is ever used for two bundles.
//
// The writer locks the temporary directory; the kernel unlocks it at the writer's death. What a
// dead writer left is removed after kAbandonedSeconds, or after kStaleSeconds where directories
// cannot be locked; a living writer gives up long before that.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/bundle/bundle.h"

namespace oomrec::bundle {

inline constexpr std::uint64_t kStaleSeconds = 600;
inline constexpr std::uint64_t kAbandonedSeconds = 30;  // a new writer locks long before

// Opens the dump directory, creating it if missing. Returns a descriptor or minus an errno.
int open_dump_directory(const char* path, Workspace& work) noexcept;

// Claims a name for a bundle of `backend` created at `created_ns`, and sets work.name and
// work.temporary. Returns a descriptor of the temporary directory or minus an errno.
int claim_name(int dump_directory, std::string_view backend, std::uint64_t created_ns,
               Workspace& work) noexcept;

// Removes a directory and the files in it. A subdirectory is not ours: then both stay.
void remove_directory(int dump_directory, const char* name, Workspace& work) noexcept;

// Removes what dead writers left behind.
void remove_leftovers(int dump_directory, std::uint64_t now_ns, Workspace& work) noexcept;

// Whether `name` has the form that claim_name() produces.
bool is_bundle_name(std::string_view name) noexcept;

}  // namespace oomrec::bundle
