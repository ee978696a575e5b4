// The bundles that the program asks for, and where its bundles are.
//
// Whoever asks waits: until the bundle is in its place, within the bundle's time bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/failures/bundle_scheduler.h"

namespace oomrec::recorder {

// oomrec_dump(): a bundle now, with what the program says of it (nullptr: nothing).
WrittenBundle dump(InHook, std::string_view reason,
                   const bundle::ExceptionTexts* texts = nullptr) noexcept;

// The absolute path of the newest bundle, of the one that tells of this thread's latest failure, of
// bundle `number`: bytes in `path`, which is as long as a path may be; 0: there is none. Waits
// until it is in its place, within the bundle's time bound.
std::size_t last_bundle(InHook, std::span<char> path) noexcept;
std::size_t failure_bundle(InHook, std::span<char> path) noexcept;
std::size_t bundle_path(InHook, std::uint64_t number, std::span<char> path) noexcept;

}  // namespace oomrec::recorder
