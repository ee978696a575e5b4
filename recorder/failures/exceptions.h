// What the program says of its exceptions.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/text/exception_texts.h"
#include "recorder/failures/bundle_scheduler.h"

namespace oomrec::recorder {

// oomrec_exception(): completes the bundle of this thread's latest failure, if that is later than
// the failure number `since`; with `any_thread` of the newest one of all, if this thread has none;
// else a bundle with the trigger `exception`.
WrittenBundle report_exception(InHook, const bundle::ExceptionTexts&, std::uint32_t since,
                               bool any_thread) noexcept;

// After a fork.
void reset_exceptions_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
