/* Needs 8 MiB before main, and exits without them. */
#include <stdio.h>
#include <stdlib.h>

static void* held;

__attribute__((constructor)) static void begin(void) {
  held = malloc(8 << 20);
  if (held == NULL) exit(3);
}

int main(void) {
  puts("main");
  return held == NULL;
}
