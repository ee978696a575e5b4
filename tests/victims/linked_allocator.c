/* Has an allocator linked in under names of its own, as Polars has jemalloc: messages, and
 * mappings.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* volatile: the text stays in the file, though nothing prints it. */
static const char* volatile message = "<jemalloc>: Error in munmap(): ";

static void* je_grow(size_t bytes) {
  void* const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : memset(at, *message, bytes);
}

int main(int argc, char** argv) {
  (void)argv;
  if (je_grow(40 << 20) == NULL) return 1;
  puts("ready");
  fflush(stdout);
  if (argc > 1) pause(); /* to be looked at */
  return 0;
}
