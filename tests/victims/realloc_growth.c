/* Grows a buffer until realloc fails. Its contents must survive. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

int main(void) {
  const struct rlimit limit = {256ul << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  size_t bytes = 1 << 20;
  char* block = malloc(bytes);
  strcpy(block, "still here");
  for (;;) {
    char* larger = realloc(block, bytes + bytes / 2);
    if (larger == NULL) break;
    block = larger;
    bytes += bytes / 2;
  }
  printf("%s, refused %zu\n", block, bytes + bytes / 2);
  free(block);
}
