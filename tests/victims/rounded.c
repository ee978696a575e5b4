/* Many blocks that take up more than they ask for, beside one of 20 MB: `rounded
 * aligned|empty|small [free]`. */
#include <stdlib.h>
#include <string.h>

enum { kMany = 1000 * 1000, kAligned = 50 * 1000, kBig = 20 * 1000 * 1000 };
static char* blocks[kMany];

static void many(const char* kind) {
  if (strcmp(kind, "aligned") == 0) {
    for (int i = 0; i < kAligned; ++i) blocks[i] = aligned_alloc(4096, 100);
  } else {
    for (int i = 0; i < kMany; ++i) blocks[i] = malloc(strcmp(kind, "small") == 0);
  }
}

static char* big(void) {
  char* const block = malloc(kBig);
  return block == NULL ? NULL : memset(block, 1, kBig);
}

int main(int argc, char** argv) {
  many(argv[1]);
  if (argc > 2)
    for (int i = 0; i < kMany; ++i) free(blocks[i]);
  char* const block = big();
  return block == NULL || block[kBig - 1] != 1;
}
