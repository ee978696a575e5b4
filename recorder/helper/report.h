// The report on stderr at a failure: at most eight lines.
//
//   oomrec: numpy asked malloc for 412.0 MiB at train.py:31 make_batch and was refused: the soft …
//   oomrec: largest holder: 640.0 MiB in 10 blocks, train.py:31 make_batch
//   oomrec: bundle oom_dumps/oom_cpu_20261121_101530_001   read it with: oomrec show
//
// The line is the innermost one of the program's own code, else the innermost of all. Without
// Python it is the innermost function that is not the standard library's. A holder here is the sum
// of one line and one module, over the 32 largest stacks.
#pragma once

#include "common/text/text.h"
#include "recorder/helper/from_process.h"

namespace oomrec::helper {

// The first lines: what happened, and the largest holder.
void report_failure(InHook, text::Text&, const session::View&, const bundle::Cause&,
                    const verdict::Verdict&, bundle::Workspace&) noexcept;

// Whether the request exceeded any address space: a test's, or a check of a size, more often than
// an end. It has no holder that would explain it, and gets one line.
bool is_impossible_size(const session::View&, const bundle::Cause&,
                        const verdict::Verdict&) noexcept;
void report_impossible_size(text::Text&, const verdict::Verdict&, std::string_view path,
                            std::string_view directory) noexcept;

// The line about the bundle at `path`. `directory`: the program's working directory, "" if unknown.
void report_bundle(text::Text&, std::string_view path, std::string_view directory) noexcept;

// The line when the bundle could not be written to `wanted`: it went to `instead`, or nowhere if
// that is empty.
void report_fallback_directory(text::Text&, std::string_view wanted, int error,
                               std::string_view instead) noexcept;

}  // namespace oomrec::helper
