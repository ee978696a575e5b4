/* Becomes a daemon, fails an allocation, and reports through an inherited pipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impossible_sizes.h"

int main(void) {
  if (daemon(1, 1) != 0) return 1;
  void* volatile block = malloc(TOO_MUCH + 151);
  printf("daemon %s\n", block == NULL ? "refused" : "given");
}
