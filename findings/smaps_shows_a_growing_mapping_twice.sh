#!/bin/bash
# /proc/self/smaps shows a mapping twice if another thread makes it larger meanwhile: who adds up its lines counts that memory twice.
#
# Seen on Linux 6.18.44 with glibc 2.36: one thread calls sbrk(4096), another reads smaps in pieces of 1 KiB. In 1 to 2 % of the reads the heap
# comes again, with its old begin and its new end. The kernel goes on after the last address that it has shown, and finds the mapping that now
# contains it. With tcmalloc 2.18.1 and 64 threads in a memory cgroup of 150 MiB a sum of Rss was 254 MiB.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat > "$work/twice.c" <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile int ends;
static void* grow(void* unused) {
  while (!ends) *(volatile char*)sbrk(4096) = 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, grow, NULL);
  int again = 0;
  for (int i = 0; i < 20000 && !again; ++i) {
    static char all[1 << 20];
    size_t bytes = 0;
    ssize_t got;
    const int fd = open("/proc/self/smaps", O_RDONLY);
    while (bytes + 1024 < sizeof all && (got = read(fd, all + bytes, 1024)) > 0) bytes += got;
    close(fd);
    all[bytes] = 0;
    unsigned long start, end, before = 0;
    for (char* line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n")) {
      char mode[5];
      if (sscanf(line, "%lx-%lx %4[rwxps-]", &start, &end, mode) != 3) continue;
      again += start < before;
      before = end;
    }
  }
  ends = 1;
  puts(again ? "a mapping came twice" : "no mapping came twice");
}
C
gcc -O1 -pthread -o "$work/twice" "$work/twice.c"
"$work/twice" | tee "$work/out"
grep -qx "a mapping came twice" "$work/out"
echo "as described"
