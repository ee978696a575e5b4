#!/bin/bash
# glibc's mallinfo2() sums all arenas, though its manual page says that it reports the main one only.
#
# Seen with glibc 2.36 (Debian 12) and man-pages 6.03, x86-64: the heap of a thread, 100 MB in an arena of its own, is in `arena` and `uordblks`. A tool that
# follows the page and adds the other arenas from malloc_info() counts them twice.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q manpages-dev=6.03-2 > problems 2>&1 || { cat problems; exit 1; }
dpkg -x manpages-dev_*.deb .
gzip -dc usr/share/man/man3/mallinfo.3.gz | tr '\n' ' ' | tr -s ' ' | grep -o 'Information is returned for only the main memory allocation area' | tee seen
cat > arenas.c <<'C'
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void* fill(void* unused) {
  for (int i = 0; i < 100000; ++i)
    if (malloc(1000) == NULL) return unused;
  return NULL;
}
int main(void) {
  pthread_t thread;
  const size_t before = mallinfo2().uordblks;
  if (pthread_create(&thread, NULL, fill, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
  printf("uordblks grew by 100 MB: %s\n", mallinfo2().uordblks - before >= 100000000 ? "yes" : "no");
  return 0;
}
C
gcc -O1 -pthread -o arenas arenas.c
./arenas | tee -a seen
diff seen - <<'O'
Information is returned for only the main memory allocation area
uordblks grew by 100 MB: yes
O
echo "as described"
