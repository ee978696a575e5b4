// The functions that take sizes and return a block. The others are in heap.cpp.
#pragma once

// clang-format off
// `may be invalid`: the function also returns NULL for misuse (EINVAL), which is not lack of memory.
//  name           parameters                                   arguments       bytes asked for            alignment     may be invalid
// The C library has these by a second name, too: __libc_malloc and so on.
#define OOMREC_LIBC_ALLOCATORS(X) \
  X(malloc,        (size_t n),                                  (n),            n,                         0,            false) \
  X(calloc,        (size_t k, size_t n),                        (k, n),         saturating_multiply(k, n), 0,            false) \
  X(memalign,      (size_t alignment, size_t n),                (alignment, n), n,                         alignment,    true) \
  X(valloc,        (size_t n),                                  (n),            n,                         kPageAligned, false) \
  X(pvalloc,       (size_t n),                                  (n),            n,                         kPageAligned, false)

#define OOMREC_HEAP_ALLOCATORS(X) \
  OOMREC_LIBC_ALLOCATORS(X) \
  X(aligned_alloc, (size_t alignment, size_t n),                (alignment, n), n,                         alignment,    true)

#define OOMREC_HEAP_REALLOCATORS(X) \
  X(realloc,       (void* block, size_t n),                     (block, n),     n) \
  X(reallocarray,  (void* block, size_t k, size_t n),           (block, k, n),  saturating_multiply(k, n))
// clang-format on
