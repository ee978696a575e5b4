/* The steps in C: malloc, and what programs do with its NULL. */
#include "steps.h"

enum { PIECE = 1 << 20 };

static void hold(size_t mib) {
  for (size_t i = 0; i < mib; ++i) {
    char* const piece = malloc(PIECE);
    if (piece != NULL) memset(piece, 1, PIECE);
  }
}

static volatile char* ask(size_t bytes) { return malloc(bytes); }

static void demand(size_t bytes) {
  if (ask(bytes) == NULL) exit(1);
}
