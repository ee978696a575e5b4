/* A program with code at two addresses far apart. An allocation fails in the far part. */
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

__attribute__((section(".far_text"))) static void* ask(size_t more) {
  void* volatile block = malloc(TOO_MUCH + more);
  return block;
}

int main(void) { printf("%s\n", ask(157) == NULL ? "refused" : "given"); }
