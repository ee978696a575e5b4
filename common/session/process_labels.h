// The labels of a process (common/options/label_variables.h), as a session holds them: one string,
// "key=value" after "key=value" with NULs between them, in order of precedence. They are in the
// session rather than in environment.json, since that has no variables of a process that was
// killed.
#pragma once

#include "common/session/layout.h"

namespace oomrec::session {

// 0: none, as in every recording by an older release.
inline StringId process_labels_of(const Header& header) noexcept { return header.rank.reserved; }
inline void set_process_labels(Header& header, StringId labels) noexcept {
  header.rank.reserved = labels;
}

}  // namespace oomrec::session
