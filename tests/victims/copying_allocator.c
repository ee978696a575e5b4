/* An allocator whose strdup, strndup and realpath do not call malloc, as mimalloc's since 3.0. It
 * never gives memory back. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { kArena = 1 << 28, kHeader = 16 };
static _Alignas(4096) char arena[kArena];
static atomic_size_t used;

static void* take(size_t alignment, size_t n) {
  const size_t spare = alignment > 16 ? alignment : 16;
  const size_t at = atomic_fetch_add(&used, (n + spare + kHeader + 15) & ~(size_t)15);
  if (n > kArena || at + n + spare + kHeader > kArena) {
    errno = ENOMEM;
    return NULL;
  }
  char* const block =
      (char*)(((uintptr_t)arena + at + kHeader + spare - 1) & ~(uintptr_t)(spare - 1));
  memcpy(block - sizeof n, &n, sizeof n);
  return block;
}

size_t malloc_usable_size(void* block) {
  size_t n = 0;
  if (block != NULL) memcpy(&n, (char*)block - sizeof n, sizeof n);
  return n;
}
void* malloc(size_t n) { return take(16, n); }
void free(void* block) { (void)block; }
void* calloc(size_t k, size_t n) { return take(16, k * n); } /* used once: it is zero */
void* realloc(void* block, size_t n) {
  void* const larger = take(16, n);
  const size_t old = malloc_usable_size(block);
  return block && larger ? memcpy(larger, block, old < n ? old : n) : larger;
}
void* memalign(size_t alignment, size_t n) { return take(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return take(alignment, n); }
int posix_memalign(void** block, size_t alignment, size_t n) {
  *block = take(alignment, n);
  return *block ? 0 : ENOMEM;
}

char* strndup(const char* text, size_t n) {
  const size_t length = strnlen(text, n);
  char* const copy = take(16, length + 1);
  if (copy == NULL) return NULL;
  copy[length] = 0;
  return memcpy(copy, text, length);
}
char* strdup(const char* text) { return strndup(text, SIZE_MAX); }
char* realpath(const char* path, char* resolved) {
  char* (*next)(const char*, char*) = (char* (*)(const char*, char*))dlsym(RTLD_NEXT, "realpath");
  char found[PATH_MAX];
  if (next(path, found) == NULL) return NULL;
  return resolved ? strcpy(resolved, found) : strndup(found, PATH_MAX);
}
