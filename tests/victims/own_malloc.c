/* Defines its own malloc for the whole process. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "marks.h"

static _Alignas(16) char arena[1 << 22];
static size_t used;

void* malloc(size_t n) {
  char* block = arena + used;
  used += (n + 31) & ~(size_t)15;
  return used <= sizeof arena ? block : NULL;
}
void free(void* block) { (void)block; }
void* calloc(size_t k, size_t n) { return malloc(k * n); }
void* realloc(void* block, size_t n) {
  void* larger = malloc(n);
  return block && larger ? memcpy(larger, block, n) : larger;
}

int main(void) {
  printf("%d\n", malloc(10) != NULL);
  mark("here");
}
