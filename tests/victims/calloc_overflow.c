/* A product that overflows size_t, and requests of 0 bytes, which are not failures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  volatile size_t many = (size_t)1 << 40;
  void* zero = malloc(0);
  void* gone = realloc(malloc(10), 0);
  errno = 0;
  void* block = calloc(many, many);
  printf("%d %d %p errno %d\n", zero != NULL, gone != NULL, block, errno);
  free(zero);
}
