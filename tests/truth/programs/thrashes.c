// Maps a file larger than its cgroup and reads it again and again: each page comes from the disk.
// thrashes MIB: prints "ready PID" once it goes in circles.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "truth.h"

int main(int argc, char** argv) {
  const size_t bytes = (size_t)atol(argv[1]) << 20;
  int file = open("pages", O_RDWR | O_CREAT, 0600);
  static char block[1 << 20];
  for (size_t at = 0; at < bytes; at += sizeof block) {
    memset(block, 1 + (int)(at >> 20), sizeof block);
    if (write(file, block, sizeof block) < 0) return 9;
    sync_file_range(file, at, sizeof block, 7);
  }
  hold(20);
  volatile char* pages = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
  madvise((void*)pages, bytes, MADV_RANDOM);
  ready();
  unlink("pages");
  for (long sum = 0;; sum += 1) {
    sum += pages[(size_t)(random() % (long)(bytes >> 12)) << 12];
    if (sum % 64 == 0) free(malloc(100000));
  }
}
