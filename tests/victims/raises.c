/* raises N: is ended by signal N of its own; 11 by a fault. raises 0: waits to be ended. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int number = atoi(argv[1]);
  puts("ready");
  fflush(stdout);
  if (number == SIGSEGV) *(volatile int*)NULL = 1;
  if (number != 0) raise(number);
  for (;;) pause();
}
