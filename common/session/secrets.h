// Keeps passwords out of recordings.
#pragma once

#include <cstddef>

namespace oomrec::session {

// Masks secrets, in place, in an argument list of `bytes` bytes with NULs between the arguments,
// and returns the new length: each becomes `***`, a short one fewer. A secret is known
// - by the name before it: `--db-password X`, `API_KEY=X`, `{"token": "X"}`, `Authorization: X`,
//   `?sig=X` (secret_names.h),
// - by its shape: `ghp_…`, `scheme://user:X@host` (secret_shapes.h),
// - by the program whose option it is: `mysql -pX` (secret_options.h).
// An argument with blanks in it may be a command of its own (`sh -c '…'`) and is read as one.
//
// Only guesses: a password that is called `--colour` stays. Bytes that are no secret are never
// changed, because they are evidence. Linear in `bytes`, allocates nothing.
std::size_t mask_secrets(char* arguments, std::size_t bytes) noexcept;

// Keeps only the first argument, which names the program, and the names of options: of
// `train.py data --lr=0.1 -j8 --token X` it keeps `train.py --lr -j --token`. The same otherwise.
std::size_t keep_names(char* arguments, std::size_t bytes) noexcept;

}  // namespace oomrec::session
