/* Fails four allocations on one stack, then does what its first argument names:
 * `recovers` waits for the end of stdin, `exits` exits with 3, `exits_later` does so a second
 * later, `dies` kills itself, `waits` waits to be killed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impossible_sizes.h"

int main(int count, char** words) {
  const char* way = count > 1 ? words[1] : "";
  void* volatile held = malloc(20 << 20);
  memset(held, 1, 20 << 20);
  for (int again = 0; strcmp(way, "never") != 0 && again < 4; ++again)
    if (malloc(TOO_MUCH + 151) != NULL) return 1;
  puts("ready");
  fflush(stdout);
  if (strcmp(way, "exits_later") == 0) sleep(1);
  if (strncmp(way, "exits", 5) == 0) return 3;
  if (strcmp(way, "dies") == 0) kill(getpid(), SIGKILL);
  if (strcmp(way, "waits") == 0 || strcmp(way, "never") == 0)
    for (;;) pause();
  while (getchar() != EOF) continue;
  return 0;
}
