// The program's own words on its exceptions (oomrec_exception): they go into the bundle of the
// failure that the exception came of.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/text/exception_texts.h"
#include "recorder/failures/bundle_scheduler.h"

namespace oomrec::recorder {

// Whose failure the exception may have come of. Pools raise again what a thread of theirs met.
enum class FailureOf : std::uint8_t { this_thread, any_thread };

// Completes the bundle of this thread's latest failure, if that is later than failure number
// `since`; else, with any_thread, of the newest one of all. Where there is none it writes a bundle
// with the trigger `exception`.
WrittenBundle report_exception(InHook, const text::ExceptionTexts&, std::uint32_t since,
                               FailureOf) noexcept;

void reset_exceptions_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
