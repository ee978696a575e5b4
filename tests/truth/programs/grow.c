// Memory that kills, each of another sort. grow SORT [MIB].
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

static size_t mib = 400;

__attribute__((noinline)) static void grow_heap(void) {
  for (size_t i = 0; i < mib; ++i) hold(1);
}
__attribute__((noinline)) static void grow_small(void) {
  for (size_t i = 0; i < mib << 14; ++i) memset(malloc(56), 1, 56);
}
__attribute__((noinline)) static void grow_big(void) { hold(mib); }
static void* grow_thread(void* none) {
  nap_ms(200);
  grow_heap();
  return none;
}
static void* raw_mapping(size_t bytes) {
  return (void*)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
}

__attribute__((noinline)) static char* load_table(void) { return hold(60); }

int main(int argc, char** argv) {
  const char* sort = argv[1];
  if (argc > 2) mib = atol(argv[2]);
  size_t bytes = mib << 20;
  if (!strcmp(sort, "heap")) grow_heap();
  if (!strcmp(sort, "small")) grow_small();
  if (!strcmp(sort, "big")) grow_big();
  if (!strcmp(sort, "lazy")) {  // promised in one call, touched later
    char* block = malloc(bytes);
    for (size_t i = 0; i < bytes; i += 4096) {
      block[i] = 1;
      if (i % (8 << 20) == 0) nap_ms(20);
    }
  }
  if (!strcmp(sort, "anonymous"))
    memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, bytes);
  if (!strcmp(sort, "shared"))
    memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, bytes);
  if (!strcmp(sort, "memfd")) {
    int file = memfd_create("frames", 0);
    ftruncate(file, bytes);
    memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), 1, bytes);
  }
  if (!strcmp(sort, "memfd_write")) {
    int file = memfd_create("frames", 0);
    static char page[1 << 20];
    for (size_t i = 0; i < mib; ++i) write(file, page, sizeof page);
  }
  if (!strcmp(sort, "raw")) memset(raw_mapping(bytes), 1, bytes);
  if (!strcmp(sort, "sysv")) {
    int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    char* block = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    memset(block, 1, bytes);
  }
  if (!strcmp(sort, "threads")) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, grow_thread, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
  if (!strcmp(sort, "no_main")) {  // main ends by pthread_exit, a thread lives on and grows
    pthread_t thread;
    pthread_create(&thread, NULL, grow_thread, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
  }
  if (!strcmp(sort, "child")) {
    if (fork() == 0) {
      grow_heap();
      _exit(0);
    }
    int status;
    wait(&status);
    return WIFSIGNALED(status) ? 1 : 0;
  }
  if (!strcmp(sort, "orphan")) {
    if (fork() != 0) return 0;
    setsid();
    nap_ms(200);
    grow_heap();
  }
  if (!strcmp(sort, "renamed")) {
    prctl(PR_SET_NAME, "worker-3");
    grow_heap();
  }
  if (!strcmp(sort, "late")) {
    nap_ms(500);
    grow_heap();
  }
  if (!strcmp(sort, "inherits")) {
    char* volatile table = load_table();
    if (fork() == 0) {
      grow_heap();
    }
    int status;
    wait(&status);
    return WIFSIGNALED(status) ? 1 : 0;
  }
  if (!strcmp(sort, "saw")) {  // grows and frees again and again, then too much
    for (int i = 0; i < 30; ++i) free(hold(mib / 16));
    grow_heap();
  }
  return 0;
}
