// The labels of this process: the service, pod, release and job that it belongs to.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

inline constexpr std::size_t kProcessLabelsBytes = 4096;

// The labels in the environment's variables, as a session holds them, in `buffer`: those of
// OpenTelemetry, of OOMREC_LABELS, of launchers. Secrets are masked; a label that does not fit is
// left out.
std::string_view read_process_labels(const char* const* environment,
                                     char (&buffer)[kProcessLabelsBytes]) noexcept;

// Called from start(). Reads them only once, because the program may change its environment later.
void store_process_labels(const char* const* environment) noexcept;
// Writes them to the header of a session that has just begun.
void describe_process_labels(InHook) noexcept;

}  // namespace oomrec::recorder
