#include "shim/allocator_names.h"

#include <string.h>

#include "recorder/events/heap.h"
#include "shim/heap.h"
#include "shim/interpose/next.h"
#include "shim/interpose/redirections.h"

extern "C" const char* gnu_get_libc_version() __attribute__((weak));

namespace oomrec::shim {
namespace {

// clang-format off
//  name                         the exported function that does the same
#define OOMREC_SAME_FUNCTIONS(X) \
  X(tc_malloc,                   "malloc") \
  X(tc_calloc,                   "calloc") \
  X(tc_realloc,                  "realloc") \
  X(tc_free,                     "free") \
  X(tc_cfree,                    "free") \
  X(tc_memalign,                 "memalign") \
  X(tc_posix_memalign,           "posix_memalign") \
  X(tc_valloc,                   "valloc") \
  X(tc_pvalloc,                  "pvalloc") \
  X(tc_new,                      "_Znwm") \
  X(tc_newarray,                 "_Znam") \
  X(tc_new_nothrow,              "_ZnwmRKSt9nothrow_t") \
  X(tc_newarray_nothrow,         "_ZnamRKSt9nothrow_t") \
  X(tc_new_aligned,              "_ZnwmSt11align_val_t") \
  X(tc_newarray_aligned,         "_ZnamSt11align_val_t") \
  X(tc_new_aligned_nothrow,      "_ZnwmSt11align_val_tRKSt9nothrow_t") \
  X(tc_newarray_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t") \
  X(tc_delete,                   "_ZdlPv") \
  X(tc_deletearray,              "_ZdaPv") \
  X(tc_delete_nothrow,           "_ZdlPvRKSt9nothrow_t") \
  X(tc_deletearray_nothrow,      "_ZdaPvRKSt9nothrow_t") \
  X(tc_delete_sized,             "_ZdlPvm") \
  X(tc_deletearray_sized,        "_ZdaPvm") \
  X(tc_delete_aligned,           "_ZdlPvSt11align_val_t") \
  X(tc_deletearray_aligned,      "_ZdaPvSt11align_val_t") \
  X(tc_delete_sized_aligned,     "_ZdlPvmSt11align_val_t") \
  X(tc_deletearray_sized_aligned, "_ZdaPvmSt11align_val_t") \
  X(mi_malloc,                   "malloc") \
  X(mi_calloc,                   "calloc") \
  X(mi_realloc,                  "realloc") \
  X(mi_reallocarray,             "reallocarray") \
  X(mi_free,                     "free") \
  X(mi_memalign,                 "memalign") \
  X(mi_aligned_alloc,            "aligned_alloc") \
  X(mi_posix_memalign,           "posix_memalign") \
  X(mi_valloc,                   "valloc") \
  X(mi_pvalloc,                  "pvalloc") \
  X(mi_new,                      "_Znwm") \
  X(mi_new_aligned,              "_ZnwmSt11align_val_t") \
  X(__posix_memalign,            "posix_memalign")

//  name                         parameters                                             arguments                 counts as  bytes asked for
#define OOMREC_NAMED_ALLOCATORS(X) \
  X(tc_malloc_skip_new_handler,  (size_t n),                                            (n),                      malloc,    n) \
  X(mi_malloc_small,             (size_t n),                                            (n),                      malloc,    n) \
  X(mi_mallocn,                  (size_t k, size_t n),                                  (k, n),                   malloc,    saturating_multiply(k, n)) \
  X(mi_zalloc,                   (size_t n),                                            (n),                      calloc,    n) \
  X(mi_zalloc_small,             (size_t n),                                            (n),                      calloc,    n) \
  X(mi_new_nothrow,              (size_t n),                                            (n),                      malloc,    n) \
  X(mi_new_aligned_nothrow,      (size_t n, size_t alignment),                          (n, alignment),           memalign,  n) \
  X(mi_malloc_aligned,           (size_t n, size_t alignment),                          (n, alignment),           memalign,  n) \
  X(mi_malloc_aligned_at,        (size_t n, size_t alignment, size_t at),               (n, alignment, at),       memalign,  n) \
  X(mi_zalloc_aligned,           (size_t n, size_t alignment),                          (n, alignment),           memalign,  n) \
  X(mi_zalloc_aligned_at,        (size_t n, size_t alignment, size_t at),               (n, alignment, at),       memalign,  n) \
  X(mi_calloc_aligned,           (size_t k, size_t n, size_t alignment),                (k, n, alignment),        memalign,  saturating_multiply(k, n)) \
  X(mi_calloc_aligned_at,        (size_t k, size_t n, size_t alignment, size_t at),     (k, n, alignment, at),    memalign,  saturating_multiply(k, n)) \
  X(mi_heap_malloc,              (void* heap, size_t n),                                (heap, n),                malloc,    n) \
  X(mi_heap_malloc_small,        (void* heap, size_t n),                                (heap, n),                malloc,    n) \
  X(mi_heap_mallocn,             (void* heap, size_t k, size_t n),                      (heap, k, n),             malloc,    saturating_multiply(k, n)) \
  X(mi_heap_zalloc,              (void* heap, size_t n),                                (heap, n),                calloc,    n) \
  X(mi_heap_calloc,              (void* heap, size_t k, size_t n),                      (heap, k, n),             calloc,    saturating_multiply(k, n)) \
  X(mi_heap_malloc_aligned,      (void* heap, size_t n, size_t alignment),              (heap, n, alignment),     memalign,  n) \
  X(mi_heap_zalloc_aligned,      (void* heap, size_t n, size_t alignment),              (heap, n, alignment),     memalign,  n) \
  X(mi_heap_calloc_aligned,      (void* heap, size_t k, size_t n, size_t alignment),    (heap, k, n, alignment),  memalign,  saturating_multiply(k, n))

// All count as realloc.
//  name                         parameters                                             arguments                 bytes asked for
#define OOMREC_NAMED_REALLOCATORS(X) \
  X(mi_reallocn,                 (void* block, size_t k, size_t n),                     (block, k, n),            saturating_multiply(k, n)) \
  X(mi_rezalloc,                 (void* block, size_t n),                               (block, n),               n) \
  X(mi_recalloc,                 (void* block, size_t k, size_t n),                     (block, k, n),            saturating_multiply(k, n)) \
  X(mi_realloc_aligned,          (void* block, size_t n, size_t alignment),             (block, n, alignment),    n) \
  X(mi_realloc_aligned_at,       (void* block, size_t n, size_t alignment, size_t at),  (block, n, alignment, at), n) \
  X(mi_rezalloc_aligned,         (void* block, size_t n, size_t alignment),             (block, n, alignment),    n) \
  X(mi_rezalloc_aligned_at,      (void* block, size_t n, size_t alignment, size_t at),  (block, n, alignment, at), n) \
  X(mi_recalloc_aligned,         (void* block, size_t k, size_t n, size_t alignment),   (block, k, n, alignment), saturating_multiply(k, n)) \
  X(mi_heap_realloc,             (void* heap, void* block, size_t n),                   (heap, block, n),         n) \
  X(mi_heap_reallocn,            (void* heap, void* block, size_t k, size_t n),         (heap, block, k, n),      saturating_multiply(k, n)) \
  X(mi_heap_rezalloc,            (void* heap, void* block, size_t n),                   (heap, block, n),         n) \
  X(mi_heap_recalloc,            (void* heap, void* block, size_t k, size_t n),         (heap, block, k, n),      saturating_multiply(k, n)) \
  X(mi_heap_realloc_aligned,     (void* heap, void* block, size_t n, size_t alignment), (heap, block, n, alignment), n)

// All count as free.
#define OOMREC_NAMED_FREES(X) \
  X(tc_free_sized,               (void* block, size_t n),                               (block, n)) \
  X(mi_cfree,                    (void* block),                                         (block)) \
  X(mi_free_size,                (void* block, size_t n),                               (block, n)) \
  X(mi_free_aligned,             (void* block, size_t alignment),                       (block, alignment)) \
  X(mi_free_size_aligned,        (void* block, size_t n, size_t alignment),             (block, n, alignment)) \
  X(vfree,                       (void* block),                                         (block))

// Copies of a text, which count as malloc; the last parameter is the result's length.
#define OOMREC_NAMED_COPIES(X) \
  X(mi_strdup,                   (const char* text),                                    (text),                   ::strlen(text)) \
  X(mi_strndup,                  (const char* text, size_t n),                          (text, n),                ::strnlen(text, n)) \
  X(mi_heap_strdup,              (void* heap, const char* text),                        (heap, text),             ::strlen(text)) \
  X(mi_heap_strndup,             (void* heap, const char* text, size_t n),              (heap, text, n),          ::strnlen(text, n))
// clang-format on

using Visitor = bool(const void* heap, const void* area, void* block, std::size_t bytes,
                     void* data);

struct NextNamed {
#define X(name, parameters, ...) void*(*name)parameters;
  OOMREC_NAMED_ALLOCATORS(X)
  OOMREC_NAMED_REALLOCATORS(X)
#undef X
#define X(name, parameters, ...) void(*name) parameters;
  OOMREC_NAMED_FREES(X)
#undef X
#define X(name, parameters, ...) char*(*name)parameters;
  OOMREC_NAMED_COPIES(X)
#undef X
  std::size_t (*xallocx)(void* block, std::size_t n, std::size_t extra, int flags);
  void (*mi_heap_destroy)(void* heap);
  bool (*mi_heap_visit_blocks)(const void* heap, bool blocks, Visitor*, void* data);
};
constinit NextNamed g_named{};

#define X(name, parameters, arguments, counted, bytes)                                     \
  void* named_##name parameters {                                                          \
    return observe_allocation(                                                             \
        Api::counted, bytes, [=] { return g_named.name arguments; }, [] { return true; }); \
  }
OOMREC_NAMED_ALLOCATORS(X)
#undef X

#define X(name, parameters, arguments, bytes)                            \
  void* named_##name parameters {                                        \
    return observe_reallocation(Api::realloc, block, bytes,              \
                                [=] { return g_named.name arguments; }); \
  }
OOMREC_NAMED_REALLOCATORS(X)
#undef X

#define X(name, parameters, arguments)                                  \
  void named_##name parameters {                                        \
    observe_release(Api::free, block, [=] { g_named.name arguments; }); \
  }
OOMREC_NAMED_FREES(X)
#undef X

#define X(name, parameters, arguments, length)                                        \
  char* named_##name parameters {                                                     \
    if (text == nullptr) return g_named.name arguments;                               \
    return static_cast<char*>(observe_allocation(                                     \
        Api::malloc, (length) + 1, [=]() -> void* { return g_named.name arguments; }, \
        [] { return true; }));                                                        \
  }
OOMREC_NAMED_COPIES(X)
#undef X

// It frees the block where it fails.
void* named_reallocf(void* block, std::size_t n) {
  void* const moved =
      observe_reallocation(Api::realloc, block, n, [=] { return g_next.realloc(block, n); });
  if (moved == nullptr && block != nullptr) hook_free(block);
  return moved;
}

// Resizes in place as far as that is possible, and returns the size that the block then has.
std::size_t named_xallocx(void* block, std::size_t n, std::size_t extra, int flags) {
  std::size_t bytes = 0;
  observe_reallocation(Api::realloc, block, n, [&] {
    bytes = g_named.xallocx(block, n, extra, flags);
    return block;
  });
  return bytes != 0 ? bytes : usable_bytes(block);  // 0: beyond --limit, and it was not called
}

bool release_visited(const void*, const void*, void* block, std::size_t, void*) {
  if (block != nullptr) observe_release(Api::free, block, [] {});
  return true;
}

// Frees all blocks of a heap of mimalloc's.
void named_mi_heap_destroy(void* heap) {
  if (heap != nullptr && g_named.mi_heap_visit_blocks != nullptr)
    g_named.mi_heap_visit_blocks(heap, true, release_visited, nullptr);
  g_named.mi_heap_destroy(heap);
}

// The allocator's function; nullptr: it has none of this name.
const void* allocators_own(const char* name, const void* allocator) noexcept {
  const void* const found = next_definition(name);
  return found != nullptr && library_of(found) == allocator ? found : nullptr;
}

template <class Function>
void add(const char* name, Function*& next, Function* hook, const void* allocator) noexcept {
  const void* const found = allocators_own(name, allocator);
  next = reinterpret_cast<Function*>(const_cast<void*>(found));
  add_redirection(name, found, reinterpret_cast<const void*>(hook), allocator);
}

void add_names(const void* allocator) noexcept {
#define X(name, same)                             \
  if (allocators_own(same, allocator) != nullptr) \
    add_exported_redirection(#name, allocators_own(#name, allocator), same, allocator);
  OOMREC_SAME_FUNCTIONS(X)
#undef X
#define X(name, ...) add(#name, g_named.name, named_##name, allocator);
  OOMREC_NAMED_ALLOCATORS(X)
  OOMREC_NAMED_REALLOCATORS(X)
  OOMREC_NAMED_FREES(X)
  OOMREC_NAMED_COPIES(X)
  X(xallocx)
  X(mi_heap_destroy)
#undef X
  for (const char* const name : {"mi_reallocf", "reallocf"})
    add_redirection(name, allocators_own(name, allocator),
                    reinterpret_cast<const void*>(named_reallocf), allocator);
  g_named.mi_heap_visit_blocks = reinterpret_cast<decltype(g_named.mi_heap_visit_blocks)>(
      const_cast<void*>(allocators_own("mi_heap_visit_blocks", allocator)));
  g_next.dlerror();  // an unknown name must not become the program's next message
}

const void* allocator_with_names() noexcept {
  const void* const allocator = library_of(reinterpret_cast<const void*>(g_next.malloc));
  const void* const c_library = library_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
  return allocator != c_library ? allocator : nullptr;
}

}  // namespace

void redirect_allocator_names() noexcept {
  if (allocator_with_names() != nullptr) redirect_once(add_allocator_names);
}

void add_allocator_names() noexcept {
  if (const void* const allocator = allocator_with_names()) add_names(allocator);
}

}  // namespace oomrec::shim
