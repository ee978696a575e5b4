#!/bin/bash
# Scudo's malloc_usable_size() is what was requested, not what the block has: blocks of 100 bytes are 100 by its count and take up 128.
#
# Seen with the standalone Scudo of LLVM 14.0.6 (Debian 12, x86-64). glibc, jemalloc and mimalloc give the size of the block or of its class. Whoever
# sums usable sizes to learn what blocks take up is short of 22 % here, of blocks of 24 bytes 62 %: the header (16 bytes) and the rest of the size class
# are nowhere. Adding the header alone, which is known, leaves the rest.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q libclang-rt-14-dev=1:14.0.6-12 > problems 2>&1 || { cat problems; exit 1; }
dpkg -x libclang-rt-14-dev_*.deb .
scudo=$(find "$work" -name 'libclang_rt.scudo_standalone-x86_64.so')
cat > blocks.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long resident(void) {
  long all = 0, pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) exit(1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}
int main(int argc, char** argv) {
  const size_t bytes = strtoul(argv[argc - 1], NULL, 10), count = ((size_t)100 << 20) / bytes;
  const long before = resident();
  size_t usable = 0;
  for (size_t i = 0; i < count; ++i) {
    char* block = malloc(bytes);
    memset(block, 1, bytes);
    usable += malloc_usable_size(block);
  }
  printf("%zu bytes: usable %zu, resident %.0f\n", bytes, usable / count, (double)(resident() - before) / count);
  return 0;
}
C
gcc -O1 -o blocks blocks.c
for bytes in 24 100; do LD_PRELOAD=$scudo ./blocks $bytes; done | tee seen
diff seen - <<'O'
24 bytes: usable 24, resident 64
100 bytes: usable 100, resident 128
O
echo "as described"
