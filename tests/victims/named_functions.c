/* Allocates and frees by the further names of an allocator: `named_functions tc|mi|libc|x` prints
 * what is live at the end, as the allocator counts it; `named_functions names` which names there
 * are, by dlsym and by a weak reference. */
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 20000, kKept = 4000, kBytes = 1000, kAlignment = 64, kMostFunctions = 32 };

#define WEAK __attribute__((weak))
typedef void* Take(void);
typedef void Give(void* block); /* of ours: a weak address in static data may stay null */

/* --- tcmalloc ------------------------------------------------------------------------------- */

WEAK void* tc_malloc(size_t n);
WEAK void* tc_malloc_skip_new_handler(size_t n);
WEAK void* tc_calloc(size_t k, size_t n);
WEAK void* tc_realloc(void* block, size_t n);
WEAK void* tc_memalign(size_t alignment, size_t n);
WEAK int tc_posix_memalign(void** block, size_t alignment, size_t n);
WEAK void* tc_valloc(size_t n);
WEAK void* tc_pvalloc(size_t n);
WEAK void* tc_new(size_t n);
WEAK void* tc_newarray(size_t n);
WEAK void* tc_new_nothrow(size_t n, const void* nothrow);
WEAK void* tc_new_aligned(size_t n, size_t alignment);
WEAK void tc_free(void* block);
WEAK void tc_free_sized(void* block, size_t n);
WEAK void tc_cfree(void* block);
WEAK void tc_delete(void* block);
WEAK void tc_deletearray(void* block);
WEAK void tc_delete_sized(void* block, size_t n);

static void* take_tc_malloc(void) { return tc_malloc(kBytes); }
static void* take_tc_skip(void) { return tc_malloc_skip_new_handler(kBytes); }
static void* take_tc_calloc(void) { return tc_calloc(1, kBytes); }
static void* take_tc_realloc(void) { return tc_realloc(tc_malloc(10), kBytes); }
static void* take_tc_memalign(void) { return tc_memalign(kAlignment, kBytes); }
static void* take_tc_posix_memalign(void) {
  void* block = NULL;
  return tc_posix_memalign(&block, kAlignment, kBytes) == 0 ? block : NULL;
}
static void* take_tc_valloc(void) { return tc_valloc(kBytes); }
static void* take_tc_pvalloc(void) { return tc_pvalloc(kBytes); }
static void* take_tc_new(void) { return tc_new(kBytes); }
static void* take_tc_newarray(void) { return tc_newarray(kBytes); }
static void* take_tc_new_nothrow(void) { return tc_new_nothrow(kBytes, ""); }
static void* take_tc_new_aligned(void) { return tc_new_aligned(kBytes, kAlignment); }
static void give_tc_free(void* block) { tc_free(block); }
static void give_tc_cfree(void* block) { tc_cfree(block); }
static void give_tc_delete(void* block) { tc_delete(block); }
static void give_tc_deletearray(void* block) { tc_deletearray(block); }
static void give_tc_free_sized(void* block) { tc_free_sized(block, kBytes); }
static void give_tc_delete_sized(void* block) { tc_delete_sized(block, kBytes); }

/* --- mimalloc ------------------------------------------------------------------------------- */

WEAK void* mi_malloc(size_t n);
WEAK void* mi_malloc_small(size_t n);
WEAK void* mi_mallocn(size_t k, size_t n);
WEAK void* mi_zalloc(size_t n);
WEAK void* mi_calloc(size_t k, size_t n);
WEAK void* mi_realloc(void* block, size_t n);
WEAK void* mi_rezalloc(void* block, size_t n);
WEAK void* mi_recalloc(void* block, size_t k, size_t n);
WEAK void* mi_reallocf(void* block, size_t n);
WEAK void* mi_malloc_aligned(size_t n, size_t alignment);
WEAK void* mi_zalloc_aligned(size_t n, size_t alignment);
WEAK void* mi_realloc_aligned(void* block, size_t n, size_t alignment);
WEAK void* mi_memalign(size_t alignment, size_t n);
WEAK void* mi_aligned_alloc(size_t alignment, size_t n);
WEAK int mi_posix_memalign(void** block, size_t alignment, size_t n);
WEAK void* mi_valloc(size_t n);
WEAK void* mi_new(size_t n);
WEAK void* mi_new_nothrow(size_t n);
WEAK char* mi_strndup(const char* text, size_t n);
WEAK void* mi_heap_new(void);
WEAK void* mi_heap_malloc(void* heap, size_t n);
WEAK void* mi_heap_get_default(void);
WEAK void mi_heap_destroy(void* heap);
WEAK void mi_free(void* block);
WEAK void mi_cfree(void* block);
WEAK void mi_free_size(void* block, size_t n);
WEAK void mi_free_aligned(void* block, size_t alignment);
WEAK void mi_free_size_aligned(void* block, size_t n, size_t alignment);
WEAK void vfree(void* block);

static void* take_mi_malloc(void) { return mi_malloc(kBytes); }
static void* take_mi_small(void) { return mi_malloc_small(kBytes); }
static void* take_mi_mallocn(void) { return mi_mallocn(10, kBytes / 10); }
static void* take_mi_zalloc(void) { return mi_zalloc(kBytes); }
static void* take_mi_calloc(void) { return mi_calloc(10, kBytes / 10); }
static void* take_mi_realloc(void) { return mi_realloc(mi_malloc(10), kBytes); }
static void* take_mi_rezalloc(void) { return mi_rezalloc(mi_zalloc(10), kBytes); }
static void* take_mi_recalloc(void) { return mi_recalloc(NULL, 10, kBytes / 10); }
static void* take_mi_reallocf(void) { return mi_reallocf(mi_malloc(10), kBytes); }
static void* take_mi_aligned(void) { return mi_malloc_aligned(kBytes, kAlignment); }
static void* take_mi_zalloc_aligned(void) { return mi_zalloc_aligned(kBytes, kAlignment); }
static void* take_mi_realloc_aligned(void) {
  return mi_realloc_aligned(mi_malloc_aligned(10, kAlignment), kBytes, kAlignment);
}
static void* take_mi_memalign(void) { return mi_memalign(kAlignment, kBytes); }
static void* take_mi_aligned_alloc(void) { return mi_aligned_alloc(kAlignment, 16 * kAlignment); }
static void* take_mi_posix_memalign(void) {
  void* block = NULL;
  return mi_posix_memalign(&block, kAlignment, kBytes) == 0 ? block : NULL;
}
static void* take_mi_valloc(void) { return mi_valloc(kBytes); }
static void* take_mi_new(void) { return mi_new(kBytes); }
static void* take_mi_new_nothrow(void) { return mi_new_nothrow(kBytes); }
static void* take_mi_strndup(void) {
  static char text[kBytes];
  memset(text, 'x', sizeof text);
  return mi_strndup(text, kBytes - 1);
}
static void* take_mi_heap(void) { return mi_heap_malloc(mi_heap_get_default(), kBytes); }
static void give_mi_free(void* block) { mi_free(block); }
static void give_mi_cfree(void* block) { mi_cfree(block); }
static void give_vfree(void* block) { vfree(block); }
static void give_mi_size(void* block) { mi_free_size(block, kBytes); }
static void give_mi_aligned(void* block) {
  (uintptr_t) block % kAlignment == 0 ? mi_free_aligned(block, kAlignment) : mi_free(block);
}
static void give_mi_size_aligned(void* block) {
  (uintptr_t) block % kAlignment == 0 ? mi_free_size_aligned(block, kBytes, kAlignment)
                                      : mi_free(block);
}

/* All of its blocks go at once. */
static int use_and_destroy_heap(void) {
  void* const heap = mi_heap_new();
  for (int i = 0; i < 3 * kBlocks; ++i)
    if (mi_heap_malloc(heap, kBytes) == NULL) return 1;
  mi_heap_destroy(heap);
  return 0;
}

/* --- the C library, jemalloc ---------------------------------------------------------------- */

void* __libc_malloc(size_t n);
void* __libc_calloc(size_t k, size_t n);
void* __libc_realloc(void* block, size_t n);
void* __libc_memalign(size_t alignment, size_t n);
void* __libc_valloc(size_t n);
void* __libc_pvalloc(size_t n);
void __libc_free(void* block);
WEAK void* mallocx(size_t n, int flags);
WEAK size_t xallocx(void* block, size_t n, size_t extra, int flags);

static void* take_libc_malloc(void) { return __libc_malloc(kBytes); }
static void* take_libc_calloc(void) { return __libc_calloc(1, kBytes); }
static void* take_libc_realloc(void) { return __libc_realloc(__libc_malloc(10), kBytes); }
static void* take_libc_memalign(void) { return __libc_memalign(kAlignment, kBytes); }
static void* take_libc_valloc(void) { return __libc_valloc(kBytes); }
static void* take_libc_pvalloc(void) { return __libc_pvalloc(kBytes); }

/* Of a large class, within which it grows and shrinks in place. */
static void* take_x(void) {
  enum { kLarge = 32 << 10, kSmaller = 20 << 10 };
  void* const block = mallocx(kLarge, 0);
  if (block == NULL || xallocx(block, kSmaller, 0, 0) != malloc_usable_size(block)) return NULL;
  return block;
}

/* -------------------------------------------------------------------------------------------- */

struct Family {
  const char* name;
  Take* take[kMostFunctions];
  Give* give[kMostFunctions];
};
static const struct Family kFamilies[] = {
    {"tc",
     {take_tc_malloc, take_tc_skip, take_tc_calloc, take_tc_realloc, take_tc_memalign,
      take_tc_posix_memalign, take_tc_valloc, take_tc_pvalloc, take_tc_new, take_tc_newarray,
      take_tc_new_nothrow, take_tc_new_aligned},
     {give_tc_free, give_tc_free_sized, give_tc_cfree, give_tc_delete, give_tc_deletearray,
      give_tc_delete_sized, free}},
    {"mi",
     {take_mi_malloc,   take_mi_small,         take_mi_mallocn,        take_mi_zalloc,
      take_mi_calloc,   take_mi_realloc,       take_mi_rezalloc,       take_mi_recalloc,
      take_mi_reallocf, take_mi_aligned,       take_mi_zalloc_aligned, take_mi_realloc_aligned,
      take_mi_memalign, take_mi_aligned_alloc, take_mi_posix_memalign, take_mi_valloc,
      take_mi_new,      take_mi_new_nothrow,   take_mi_strndup,        take_mi_heap},
     {give_mi_free, give_mi_size, give_mi_aligned, give_mi_size_aligned, give_mi_cfree, free,
      give_vfree}},
    {"libc",
     {take_libc_malloc, take_libc_calloc, take_libc_realloc, take_libc_memalign, take_libc_valloc,
      take_libc_pvalloc},
     {__libc_free, free}},
    {"x", {take_x}, {free}},
};

static void* kept[kMostFunctions][kKept];

static int use(const struct Family* family) {
  size_t live = 0;
  int frees = 0, given = 0;
  while (family->give[frees] != NULL) ++frees;
  for (int f = 0; family->take[f] != NULL; ++f)
    for (int i = 0; i < kBlocks; ++i) {
      void* const block = family->take[f]();
      if (block == NULL) return 2;
      if (i < kKept) {
        kept[f][i] = block;
        live += malloc_usable_size(block);
      } else {
        family->give[given++ % frees](block);
      }
    }
  return printf("%zu\n", live) < 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  if (strcmp(argv[1], "names") == 0) {
    static const char* const kNames[] = {"tc_malloc", "tc_free",   "mi_malloc",
                                         "mi_free",   "mi_zalloc", "xallocx"};
    for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
      printf("%s %d\n", kNames[i], dlsym(RTLD_DEFAULT, kNames[i]) != NULL);
    return printf("%d %d %d %d\n", tc_malloc != NULL, mi_malloc != NULL, mi_zalloc != NULL,
                  xallocx != NULL) < 0;
  }
  for (size_t i = 0; i < sizeof kFamilies / sizeof *kFamilies; ++i) {
    if (strcmp(argv[1], kFamilies[i].name) != 0) continue;
    if (mi_heap_new != NULL && i == 1 && use_and_destroy_heap() != 0) return 3;
    return use(&kFamilies[i]);
  }
  return 1;
}
