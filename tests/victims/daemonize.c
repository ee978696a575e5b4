/* Becomes a daemon and reports through a pipe that it kept; then it is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refused.h"

int main(void) {
  if (daemon(1, 1) != 0) return 1;
  void* volatile block = malloc(TOO_MUCH + 151);
  printf("daemon %s\n", block == NULL ? "refused" : "given");
}
