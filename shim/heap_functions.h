// The functions that take sizes and return a block. The others are in heap.cpp.
#pragma once

// clang-format off
// `may be invalid`: the function also returns NULL for misuse (EINVAL), which is not lack of memory.
//  name           parameters                                   arguments       bytes asked for            may be invalid
#define OOMREC_HEAP_ALLOCATORS(X) \
  X(malloc,        (size_t n),                                  (n),            n,                         false) \
  X(calloc,        (size_t k, size_t n),                        (k, n),         saturating_multiply(k, n), false) \
  X(memalign,      (size_t alignment, size_t n),                (alignment, n), n,                         true) \
  X(aligned_alloc, (size_t alignment, size_t n),                (alignment, n), n,                         true) \
  X(valloc,        (size_t n),                                  (n),            n,                         false) \
  X(pvalloc,       (size_t n),                                  (n),            n,                         false)

#define OOMREC_HEAP_REALLOCATORS(X) \
  X(realloc,       (void* block, size_t n),                     (block, n),     n) \
  X(reallocarray,  (void* block, size_t k, size_t n),           (block, k, n),  saturating_multiply(k, n))
// clang-format on
