// counted_storm SECONDS: threads that allocate, resize and free each other's blocks, fork, start
// threads and programs, load and unload libraries, and are interrupted by signals, all at once.
// At each mark it prints its own figures of the heap:
//
//   MARK in-arenas mapped mapped-blocks own-allocations own-bytes own-live-bytes
//
// the first three from glibc (mallinfo2), the others counted in `own_…` below. At "start" and "end"
// nothing else runs; "mid N" and "child N" are in the middle of the storm.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "marks.h"

namespace {

constexpr unsigned kAllocators = 4;
constexpr unsigned kKept = 64;        // by each thread
constexpr unsigned kMailboxes = 128;  // to pass blocks between threads
constexpr int kMarks = 6;             // of each kind

struct Block {
  void* address;
  size_t bytes;  // requested
};

std::atomic<bool> g_stop{false};
std::atomic<int> g_wrong{0};
std::atomic<size_t> g_allocations{0}, g_bytes{0}, g_live_bytes{0};
std::atomic<int> g_children{0};
bool g_marks = false;
Block g_kept[kAllocators][kKept];
std::atomic<Block*> g_mailboxes[kMailboxes];
// A handler may allocate: this thread holds no lock of malloc's.
thread_local volatile bool t_may_allocate = false;

void counted(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  g_bytes.fetch_add(bytes, std::memory_order_relaxed);
  g_live_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

[[gnu::noinline]] void* own_allocate(size_t bytes, unsigned way) {
  void* address = nullptr;
  switch (way % 4) {
    case 0:
      address = calloc(1, bytes);
      break;
    case 1:
      if (posix_memalign(&address, 64, bytes) != 0) abort();
      break;
    default:
      address = malloc(bytes);
  }
  counted(bytes);
  memset(address, 1, bytes < 64 ? bytes : 64);
  return address;
}

[[gnu::noinline]] void* own_resize(void* address, size_t before, size_t bytes) {
  address = realloc(address, bytes);
  counted(bytes);
  g_live_bytes.fetch_sub(before, std::memory_order_relaxed);
  return address;
}

[[gnu::noinline]] void own_free(const Block& block) {
  free(block.address);
  g_live_bytes.fetch_sub(block.bytes, std::memory_order_relaxed);
}

size_t size_for(unsigned number) { return 1 + (number % 100 == 0 ? 200'000 : number % 3000); }

// Puts a block into a mailbox, and frees the previous one, of any thread.
void hand_over(unsigned place, Block* letter) {
  Block* const before = g_mailboxes[place % kMailboxes].exchange(letter);
  if (before == nullptr) return;
  own_free(*before);
  delete before;
}

void work_once(Block* kept, unsigned& seed) {
  Block& block = kept[static_cast<unsigned>(rand_r(&seed)) % kKept];
  const unsigned number = static_cast<unsigned>(rand_r(&seed));
  const size_t bytes = size_for(number >> 4);
  if (number % 8 == 0 && block.address != nullptr) {
    block = {own_resize(block.address, block.bytes, bytes), bytes};
    return;
  }
  if (block.address != nullptr) own_free(block);
  block = {own_allocate(bytes, number), bytes};
  if (number % 8 == 1) hand_over(number >> 4, new Block{own_allocate(bytes, number), bytes});
}

void* allocate(void* kept) {
  unsigned seed = static_cast<unsigned>(reinterpret_cast<uintptr_t>(kept));
  while (!g_stop) {
    work_once(static_cast<Block*>(kept), seed);
    t_may_allocate = true;
    for (int i = 0; i < 200; ++i) asm volatile("");  // time for a signal
    t_may_allocate = false;
  }
  return nullptr;
}

void handle(int) {
  void* const pages =
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (t_may_allocate) free(malloc(100));
  munmap(pages, 8192);
}

void say(const char* name) {
  const struct mallinfo2 info = mallinfo2();
  char line[160];
  const int n =
      snprintf(line, sizeof line, "%s %zu %zu %zu %zu %zu %zu\n", name, info.uordblks, info.hblkhd,
               info.hblks, g_allocations.load(), g_bytes.load(), g_live_bytes.load());
  if (write(1, line, static_cast<size_t>(n)) != n) abort();
  mark(name);
}

// The child has the blocks of all threads, but only one thread, and continues alone.
void be_a_child(int number) {
  static Block own[kKept];
  unsigned seed = static_cast<unsigned>(number);
  Block large = {own_allocate(3 << 20, 2), 3 << 20};  // enough to start a session
  for (int i = 0; i < 300; ++i) work_once(own, seed);
  if (fork() == 0) _exit(0);
  wait(nullptr);
  own_free(large);
  if (g_marks && number % 100 == 0 && number / 100 < kMarks) {
    char name[32];
    snprintf(name, sizeof name, "child %d", number / 100);
    say(name);
  }
  if (number % 3 == 0) execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
  _exit(7);
}

void* fork_and_wait(void*) {
  while (!g_stop) {
    const int number = g_children.fetch_add(1);
    const pid_t child = fork();
    if (child == 0) be_a_child(number);
    int status = 0;
    waitpid(child, &status, 0);
    g_wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
  }
  return nullptr;
}

void* start_programs(void*) {
  char* const words[] = {const_cast<char*>("true"), nullptr};
  while (!g_stop) {
    pid_t child = 0;
    int status = 1;
    if (posix_spawn(&child, "/bin/true", nullptr, nullptr, words, environ) != 0) ++g_wrong;
    waitpid(child, &status, 0);
    g_wrong += status != 0;
  }
  return nullptr;
}

void* load_and_unload(void*) {
  const char* const libraries[] = {"libz.so.1", "libsqlite3.so.0", "libexpat.so.1"};
  for (unsigned i = 0; !g_stop; ++i) {
    if (void* const library = dlopen(libraries[i % 3], RTLD_NOW | RTLD_LOCAL)) dlclose(library);
  }
  return nullptr;
}

void* live_briefly(void*) {
  own_free({own_allocate(5003, 2), 5003});
  return nullptr;
}

void* start_threads(void*) {
  while (!g_stop) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, live_briefly, nullptr) == 0) pthread_join(thread, nullptr);
  }
  return nullptr;
}

// Sleeps on after signals.
void wait_for(unsigned us) {
  timeval now{}, until{};
  gettimeofday(&until, nullptr);
  const timeval pause{us / 1'000'000, us % 1'000'000};
  timeradd(&until, &pause, &until);
  do {
    usleep(10'000);
    gettimeofday(&now, nullptr);
  } while (timercmp(&now, &until, <));
}

void storm(unsigned seconds, int marks) {
  pthread_t threads[kAllocators + 8];
  unsigned count = 0;
  for (auto& kept : g_kept) pthread_create(&threads[count++], nullptr, allocate, kept);
  for (auto* work : {fork_and_wait, load_and_unload, start_threads}) {
    for (int i = 0; i < 2; ++i) pthread_create(&threads[count++], nullptr, work, nullptr);
  }
  pthread_create(&threads[count++], nullptr, start_programs, nullptr);
  for (int i = 0; i < std::max(marks, 1); ++i) {
    wait_for(seconds * 1'000'000 / static_cast<unsigned>(std::max(marks, 1)));
    if (marks == 0) continue;
    char name[32];
    snprintf(name, sizeof name, "mid %d", i);
    say(name);
  }
  g_stop = true;
  for (unsigned i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seconds = argc == 2 ? static_cast<unsigned>(atoi(argv[1])) : 1;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  storm(1, 0);  // allocates what libraries, threads and arenas need only once
  g_stop = false;
  g_marks = true;
  g_children = 0;
  say("start");
  const itimerval often = {{0, 700}, {0, 700}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  storm(seconds, kMarks);
  setitimer(ITIMER_REAL, &never, nullptr);
  say("end");
  return g_wrong != 0;
}
