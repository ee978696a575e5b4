// all_events: every kind of event of the heap, by one thread after the other, in the same order at
// each run; then a SIGKILL by its own hand.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/bench/descents.h"

static std::vector<void*> g_kept;
static std::uint64_t g_events_done;

static void* allocate(std::size_t bytes) {
  switch (g_events_done++ % 7) {
    case 0:
      return std::calloc(1, bytes);
    case 1:
      return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    case 2:
      return std::realloc(std::malloc(bytes), bytes * 3);
    case 3:
      return ::operator new(bytes);
    case 4:
      return std::malloc(bytes + 33'000);  // no small block
    default:
      return std::malloc(bytes);
  }
}

inline void descents::event(std::size_t bytes) {
  void* const block = allocate(bytes);
  if (g_events_done % 11 == 0)
    g_kept.push_back(block);
  else
    std::free(block);
  if (g_kept.size() > 300) {
    for (std::size_t i = 0; i < g_kept.size(); i += 2) std::free(g_kept[i]);
    std::vector<void*> left;
    for (std::size_t i = 1; i < g_kept.size(); i += 2) left.push_back(g_kept[i]);
    g_kept = left;
  }
}

int main() {
  const auto work = [] {
    descents::make('a', 12, 3'000);
    descents::make('b', 30, 6'000);
    descents::make('c', 20, 2'000);
  };
  work();
  for (int i = 0; i < 5; ++i) {  // each frees what others have made
    std::thread thread{work};
    thread.join();
  }
  kill(getpid(), SIGKILL);
}
