/* Sets RLIMIT_AS, holds half of it and requests all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(void) {
  const struct rlimit limit = {512ul << 20, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  char* volatile half = malloc(256ul << 20);
  char* volatile whole = malloc((512ul << 20) + 139);
  printf("%d %d\n", half != NULL, whole == NULL);
}
