/* A library to preload that interposes cuMemAlloc_v2, like other recorders and limiters of GPU
 * memory. It finds the next one by RTLD_NEXT, or by the library's handle (INTERPOSER=handle). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Allocate)(void** block, size_t bytes);
static unsigned calls;

static Allocate next(void) {
  const char* const way = getenv("INTERPOSER");
  if (way == NULL || strcmp(way, "handle") != 0) return (Allocate)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return (Allocate)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
}

__attribute__((visibility("default"))) int cuMemAlloc_v2(void** block, size_t bytes) {
  calls++;
  const Allocate real = next();
  return real == NULL ? 999 : real(block, bytes);
}

/* Runs before main, after all earlier constructors. */
__attribute__((constructor)) static void begin(void) {
  printf("in a constructor: %s\n",
         dlsym(RTLD_DEFAULT, "cuMemFree_v2") != NULL ? "found" : "nothing");
}

__attribute__((destructor)) static void end(void) {
  printf("the interposer saw %u\n", calls);
  fflush(stdout);
}
