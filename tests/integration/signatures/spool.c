/* A spooler that runs out of memory in a way of choice: spool CAUSE [killed]. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 256 << 10, ENOUGH = 40 << 20 };

static char* kept[4096];
static unsigned count;

static char* filled(char* block, size_t bytes) {
  if (block == NULL) abort();
  return memset(block, 's', bytes);
}

__attribute__((noinline)) static void spool_job(size_t bytes) {
  kept[count++] = filled(malloc(bytes), bytes);
}

__attribute__((noinline)) static void grow_table(void) {
  static char* table;
  static size_t bytes;
  table = realloc(table, bytes + STEP);
  filled(table, bytes + STEP);
  bytes += STEP;
}

__attribute__((noinline)) static void sample(void) {
  char* block = filled(malloc(6 * STEP), 6 * STEP);
  __asm__ volatile("" : : "r"(block) : "memory");
  free(block);
}

__attribute__((noinline)) static void warm(void) {
  for (int i = 0; i < 30; ++i) kept[count++] = filled(malloc(STEP), STEP);
}

int main(int words, char** word) {
  size_t held = 0;
  warm();
  for (;;) {
    for (int i = 0; i < 8; ++i, held += STEP) {
      if (strcmp(word[1], "jobs") == 0)
        spool_job(STEP);
      else
        grow_table();
    }
    if (words > 2 && held > ENOUGH) raise(SIGKILL);
    sample();
  }
}
