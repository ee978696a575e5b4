// The dump directory: names, the temporary directory a bundle is written in, and its publication.
//
// `oom_cpu_20261121_101530_001` is written as `.oom_cpu_20261121_101530_001.partial` and renamed
// when it is whole. Making that directory claims the number, the next after all of that second: of
// several processes one gets it, and no path names first one bundle and then another. What a writer
// left that died is removed when it is kStaleSeconds old; a writer gives up long before.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/bundle/bundle.h"

namespace oomrec::bundle {

inline constexpr std::uint64_t kStaleSeconds = 600;

// Opens the dump directory, which is made when it is not there: a descriptor or minus an errno.
int open_dump_directory(const char* path, Workspace& work) noexcept;

// Claims a name for a bundle of `backend` made at `created_ns`: work.name and work.temporary.
// Returns a descriptor of the temporary directory or minus an errno.
int claim_name(int dump_directory, std::string_view backend, std::uint64_t created_ns,
               Workspace& work) noexcept;

// Removes a directory's files and the directory. Subdirectories are not ours: they stay, and it.
void remove_directory(int dump_directory, const char* name, Workspace& work) noexcept;

// Removes what dead writers left.
void remove_strays(int dump_directory, std::uint64_t now_ns, Workspace& work) noexcept;

// Whether `name` is one that claim_name() gives.
bool is_bundle_name(std::string_view name) noexcept;

}  // namespace oomrec::bundle
