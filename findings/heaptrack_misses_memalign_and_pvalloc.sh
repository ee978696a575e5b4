#!/bin/bash
# heaptrack records neither memalign() nor pvalloc(): a block of 100 MiB that they return is in no figure, while valloc(), aligned_alloc() and
# posix_memalign() are recorded.
#
# Seen with heaptrack 1.4.0-2 (Debian 12, x86-64), glibc 2.36. Programs older than C11, and allocators of matrices, still call memalign().
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q heaptrack=1.4.0-2 libheaptrack=1.4.0-2 > problems 2>&1 || { cat problems; exit 1; }
for package in *.deb; do dpkg -x "$package" root; done
cat > block.c <<'C'
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  void* p = NULL;
  const size_t size = 100 << 20;
  const char* name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "memalign")) p = memalign(64, size);
  if (!strcmp(name, "pvalloc")) p = pvalloc(size);
  if (!strcmp(name, "valloc")) p = valloc(size);
  if (!strcmp(name, "aligned_alloc")) p = aligned_alloc(64, size);
  if (!strcmp(name, "posix_memalign") && posix_memalign(&p, 64, size)) p = NULL;
  return p == NULL || memset(p, 1, size) != p;
}
C
gcc -O1 -fno-builtin -o block block.c
for name in memalign pvalloc valloc aligned_alloc posix_memalign; do
  root/usr/bin/heaptrack -o "$name" ./block "$name" > log 2>&1 || { cat log; exit 1; }
  echo "$name: $(root/usr/bin/heaptrack_print "$name".* 2> log | sed -n 's/.*peak heap memory consumption: //p')"
done | sed -E 's/[0-9.]+K$/below 1 MB/' | tee seen
diff seen - <<'O'
memalign: below 1 MB
pvalloc: below 1 MB
valloc: 104.93M
aligned_alloc: 104.93M
posix_memalign: 104.93M
O
echo "as described"
