// Bundles that the program requests, and the paths of its bundles.
//
// Every function waits until the bundle is complete, within the bundle's time bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"
#include "recorder/failures/bundle_scheduler.h"

namespace oomrec::recorder {

// oomrec_dump(): writes a bundle now, with the program's texts if there are any.
WrittenBundle dump(InHook, std::string_view reason,
                   const text::ExceptionTexts* texts = nullptr) noexcept;

// Writes the absolute path of the newest bundle, of the bundle of this thread's latest failure, or
// of bundle `number` to `path`. Returns its length in bytes; 0: there is none.
std::size_t last_bundle(InHook, std::span<char> path) noexcept;
std::size_t failure_bundle(InHook, std::span<char> path) noexcept;
std::size_t bundle_path(InHook, std::uint64_t number, std::span<char> path) noexcept;

}  // namespace oomrec::recorder
