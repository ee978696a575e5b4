/* Holds 24 MiB, prints "ready", and after a line of stdin grows until it is killed. With `refused`
 * it first fails an allocation, with `ends` it exits with 3 instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impossible_sizes.h"

enum { PIECE = 1 << 20 };

__attribute__((noinline)) static void grow(int pieces) {
  for (int i = 0; i < pieces; ++i) {
    char* const piece = malloc(PIECE);
    if (piece != NULL) memset(piece, 1, PIECE);
  }
}

int main(int count, char** words) {
  const char* const way = count > 1 ? words[1] : "";
  grow(24);
  if (strcmp(way, "refused") == 0 && malloc(TOO_MUCH + 173) != NULL) return 1;
  puts("ready");
  fflush(stdout);
  while (getchar() == EOF) pause();
  if (strcmp(way, "ends") == 0) return 3;
  for (;;) grow(1);
}
