/* A program whose code lies in two places with a hole between them; refused in the far one. */
#include <stdio.h>
#include <stdlib.h>

#include "refused.h"

__attribute__((section(".far_text"))) static void* ask(size_t more) {
  void* volatile block = malloc(TOO_MUCH + more);
  return block;
}

int main(void) { printf("%s\n", ask(157) == NULL ? "refused" : "given"); }
