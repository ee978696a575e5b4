// Adds the program's description of an exception (oomrec_exception) to the bundle of the failure
// that led to it.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/system/hook_scope.h"
#include "common/text/exception_texts.h"
#include "recorder/failures/bundle_scheduler.h"

namespace oomrec::recorder {

// Whose failure may have led to the exception. Pools raise their threads' exceptions again.
enum class FailureOf : std::uint8_t { this_thread, any_thread };

// Completes the bundle of this thread's latest failure, if that is later than failure number
// `since`; else, with any_thread, that of the newest failure of all. If there is none, it writes a
// bundle with the trigger `exception`.
WrittenBundle report_exception(InHook, const text::ExceptionTexts&, std::uint32_t since, FailureOf,
                               std::string_view reason = {}) noexcept;

// An uncaught exception of this type (empty: unknown) ends the interpreter or its script, for lack
// of memory by its own account or, `is_of_worker`, by another process's. Writes the bundle, unless
// an exception or a failure that may have led to it has one.
void report_uncaught(InHook, std::string_view type, bool is_of_worker = false) noexcept;

// Whether that has written the last bundle: an exit status that follows belongs to it.
bool has_reported_uncaught() noexcept;

void reset_exceptions_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
