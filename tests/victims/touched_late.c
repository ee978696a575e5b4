/* touched_late MIB: allocates one block, announces it, and touches it without another call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t bytes = (size_t)atol(argv[1]) << 20;
  char* const block = calloc(bytes, 1);
  if (block == NULL || write(1, "allocated\n", 10) != 10) return 1;
  memset(block, 1, bytes);
  return block[bytes / 2] != 1;
}
