// Is moved to another cgroup, and needs memory there. moves touches|grows|rests MIB.
#include <sys/mman.h>

#include "truth.h"

int main(int count, char** words) {
  const size_t bytes = (size_t)atol(words[2]) << 20;
  hold(24);
  char* reserved = (char*)malloc(bytes);
  ready();
  nap_ms(1500);
  if (!strcmp(words[1], "rests"))
    for (;;) pause();
  for (size_t at = 0; at < bytes; at += 1 << 20) {
    if (!strcmp(words[1], "touches"))
      memset(reserved + at, 1, 1 << 20);
    else
      hold(1);
    nap_ms(3);
  }
  return count == 0;
}
