// Where this process' bundles go and how many stay: as it was started, or as the program has said
// since (oomrec_set_dumps).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/bundle/bundle.h"
#include "common/session/entries.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From start(): the directory that the process was started with, made absolute.
void start_dump_directory(const char* directory) noexcept;
// That directory: absolute, % words expanded once there is a session.
const char* dump_directory() noexcept;

// What counts now. The path stands for as long as a bundle is written.
bundle::Destination destination() noexcept;

// Bundles go to `directory`, an absolute path taken as it is, from now on, here and in children;
// empty: as the process was started. Of bounds 0 is none. False: not absolute, too long.
bool set_dump_directory(InHook, std::string_view directory, std::uint64_t max_dumps,
                        std::uint64_t max_total_mb) noexcept;

// In the child of a fork: another thread of the parent may have been in set_dump_directory().
void reset_dump_directory_after_fork(InHook) noexcept;

// Enters what counts into a session that has just begun: the string for its header.
session::StringId describe_dump_directory(InHook) noexcept;

}  // namespace oomrec::recorder
