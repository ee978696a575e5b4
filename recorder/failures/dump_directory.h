// The directory of this process' bundles, and how many it keeps: as the process was started, or as
// the program has set since (oomrec_set_dumps).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/bundle/bundle.h"
#include "common/session/entries.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From start(): the directory that the process was started with.
void start_dump_directory(const char* directory) noexcept;
// That directory: absolute, and with % words expanded once there is a session.
const char* dump_directory() noexcept;

// The current directory. Its path stays valid while a bundle is written.
bundle::Destination destination() noexcept;

// Sets the directory of this process and its children: an absolute path, without % words; empty: as
// the process was started. A bound of 0 is none. False: not absolute, or too long.
bool set_dump_directory(InHook, std::string_view directory, std::uint64_t max_dumps,
                        std::uint64_t max_total_mb) noexcept;

// Adds the current directory as a string to a session that has just begun, for its header.
session::StringId describe_dump_directory(InHook) noexcept;

// In the parent another thread may have been in set_dump_directory().
void reset_dump_directory_after_fork(InHook) noexcept;

// Forgets the directories that the program has named.
void forget_dump_directories(InHook) noexcept;

// Writes one of the user's paths to `out`, made absolute while the working directory is still the
// one that it started in. A path that does not fit is cut: creating it will fail.
void make_absolute(const char* path, std::span<char> out) noexcept;

}  // namespace oomrec::recorder
