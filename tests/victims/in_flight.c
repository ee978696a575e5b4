/* Is killed inside a call that touches the memory which it returns. argv[1]: which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static char* keep(void) {
  char* p = malloc(40 * MIB);
  return memset(p, 1, 40 * MIB);
}
static void* populate(void) {
  return mmap(NULL, 500 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
              -1, 0);
}
static void* locked(void) {
  mlockall(MCL_FUTURE);
  return malloc(500 * MIB);
}
static char* old_block(void) {
  char* p = malloc(90 * MIB);
  return memset(p, 1, 90 * MIB);
}
static void* resize(void* old) { return realloc(old, 150 * MIB); }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  char* kept = keep();
  void* last = NULL;
  if (strcmp(what, "populate") == 0) last = populate();
  if (strcmp(what, "locked") == 0) last = locked();
  if (strcmp(what, "resize") == 0) last = resize(old_block());
  if (strcmp(what, "afterwards") == 0) { /* the call returns: it was not killed in there */
    char* p = malloc(500 * MIB);
    last = memset(p, 1, 500 * MIB);
  }
  puts("got it");
  return kept[0] + (last != NULL);
}
