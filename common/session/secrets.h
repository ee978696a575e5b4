// Keeps passwords out of recordings.
#pragma once

#include <cstddef>

namespace oomrec::session {

// Masks the values of secrets, in place, in an argument list of `bytes` bytes with NULs between the
// arguments: `--token=VALUE`, `API_KEY=VALUE`, the argument after `--password` or `password`, and
// the password in `scheme://user:password@host`. A value becomes `***`; returns the new length.
std::size_t mask_secrets(char* arguments, std::size_t bytes) noexcept;

}  // namespace oomrec::session
