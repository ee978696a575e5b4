/* Starts, works, fails an allocation, works and ends. It writes the current phase to the given
 * file's page. It always holds enough for a bundle by `oomrec recover`, whenever it is
 * killed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "impossible_sizes.h"

enum { starts, works, is_refused, ends, page_bytes = 4096 };

static void work(void) {
  for (int round = 0; round < 3000; ++round) {
    void* volatile block = malloc(100003);
    memset(block, 1, 100003);
    free(block);
  }
}

int main(int count, char** words) {
  if (count < 2) return 2;
  void* const held = malloc(17 << 20);
  const int fd = open(words[1], O_RDWR | O_CLOEXEC);
  volatile uint32_t* const phase =
      mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (phase == MAP_FAILED || held == NULL) return 1;
  *phase = works;
  work();
  *phase = is_refused;
  void* volatile too_much = malloc(TOO_MUCH + 241);
  *phase = works;
  work();
  *phase = ends;
  return too_much != NULL;
}
