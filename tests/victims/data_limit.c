/* Grows the break until it fails at RLIMIT_DATA. */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
  struct rlimit limit = {72 << 20, 72 << 20};
  setrlimit(RLIMIT_DATA, &limit);
  int grown = 0;
  while (sbrk(20 << 20) != (void*)-1) ++grown;
  const int cause = errno;
  printf("grown %d times, errno %d, brk %d\n", grown, cause, brk((char*)sbrk(0) + (80 << 20)));
}
