/* A plugin whose calls the loader binds past us if it is opened with RTLD_DEEPBIND. OWN_MALLOC: it
 * brings an allocator of its own.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef OWN_MALLOC
#include "bump_allocator.h"
#endif

EXPORT void* of_constructor;
__attribute__((constructor)) static void begin(void) { of_constructor = malloc(1000003); }

/* The address of malloc in the plugin's data. */
static void* (*const volatile by_address)(size_t) = malloc;

static void* filled(void* block, size_t bytes) { return block ? memset(block, 1, bytes) : NULL; }

EXPORT void* plugin_allocate(size_t bytes) { return filled(malloc(bytes), bytes); }
EXPORT void* plugin_allocate_by_address(size_t bytes) { return filled(by_address(bytes), bytes); }
EXPORT void* plugin_resize(void* block, size_t bytes) { return realloc(block, bytes); }
EXPORT void plugin_release(void* block) { free(block); }
EXPORT void* plugin_map(size_t bytes) {
  void* const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : filled(at, bytes);
}
EXPORT void* plugin_too_much(void) { return malloc(PTRDIFF_MAX); }
