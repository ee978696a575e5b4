/* A minimal program, also built statically and with musl. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
  char* block = malloc(1000);
  printf("hello %d %s %d\n", count, count > 1 ? arguments[1] : "-", block != NULL);
  const char* preload = getenv("LD_PRELOAD");
  printf("LD_PRELOAD %s\n", preload ? preload : "is not set");
  free(block);
}
