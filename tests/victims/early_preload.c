/* A library to preload beside the recorder. It allocates in its constructor and destructor, and its
 * calloc looks the next one up by dlsym at its first call. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* (*next_calloc)(size_t, size_t);

void* calloc(size_t k, size_t n) {
  if (next_calloc == NULL) {
    union {
      void* symbol;
      void* (*function)(size_t, size_t);
    } found = {dlsym(RTLD_NEXT, "calloc")};
    next_calloc = found.function;
  }
  return next_calloc(k, n);
}

static char* volatile kept;

__attribute__((constructor)) static void begin(void) {
  kept = realloc(calloc(3, 1009), 5003);
  memset(kept, 1, 5003);
}

__attribute__((destructor)) static void end(void) {
  free(kept);
  free(calloc(7, 1013));
  if (write(1, "unloaded\n", 9) != 9) _exit(9);
}
