/* Every way to map and to unmap address space, with a bundle after each step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "marks.h"

#define MIB ((size_t)1 << 20)

static const int writable = PROT_READ | PROT_WRITE;

static void* map(void* at, size_t bytes, int protection, int flags) {
  return mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void) {
  mark("start");
  char* before = sbrk(3 * MIB);
  mark("sbrk +3");
  brk(before + 1 * MIB);
  mark("brk -2");
  sbrk(-(intptr_t)MIB);
  mark("sbrk -1");

  const int segment = shmget(IPC_PRIVATE, 5 * MIB, IPC_CREAT | 0600);
  void* attached = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  mark("shmat +5");
  shmdt(attached);
  mark("shmdt -5");

  char* old = map(NULL, 7 * MIB, writable, 0);
  mark("mmap +7");
  char* moved = mremap(old, 7 * MIB, 7 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  if (moved == MAP_FAILED) moved = map(NULL, 7 * MIB, writable, 0); /* Linux < 5.7 */
  mark("dontunmap +7");
  munmap(old, 7 * MIB);
  mark("munmap -7");

  map(moved + MIB, 2 * MIB, PROT_NONE, MAP_FIXED);
  mark("reserved over -2");
  map(moved + MIB, MIB, writable, MAP_FIXED);
  mark("fixed over +1");
  map(moved + MIB, MIB, writable, MAP_FIXED);
  mark("fixed again 0");
  munmap(moved, 7 * MIB);
  mark("munmap -6");

  char* used = map(NULL, 5 * MIB, writable, MAP_NORESERVE);
  mark("noreserve +5");
  munmap(used, 5 * MIB);
  char* hinted = map(used, 5 * MIB, writable, MAP_NORESERVE); /* as mimalloc asks */
  char* spare = map(NULL, 1024 * MIB, writable, MAP_NORESERVE);
  mark("noreserve for later 0");
  munmap(hinted, 5 * MIB);
  munmap(spare, 1024 * MIB);

  char* reserved = map(NULL, 100 * MIB, PROT_NONE, MAP_NORESERVE);
  mark("reserved 0");
  mprotect(reserved, 9 * MIB, writable);
  mark("mprotect +9");
  mprotect(reserved, MIB, PROT_READ);
  mprotect(reserved, MIB, writable);
  mark("mprotect again 0");
  puts(mprotect(reserved, 100 * MIB, writable) == 0 ? "granted" : "refused");
  mark("mprotect +91");
}
