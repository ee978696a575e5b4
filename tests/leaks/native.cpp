// native CASE SECONDS: one of the labelled programs (cases.py), in C and C++: memory that leaks, or
// only seems to. Prints "done PID" and holds its memory until stdin ends.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point g_begin, g_end;

// The elapsed share of the time, 0…1. next() is true every 10 ms until the end.
bool step(double* part = nullptr) {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto now = Clock::now();
  if (part) *part = std::chrono::duration<double>(now - g_begin) / (g_end - g_begin);
  return now < g_end;
}

char* touched(std::size_t bytes) {
  char* const block = static_cast<char*>(std::malloc(bytes));
  std::memset(block, 1, bytes);
  return block;
}

void* volatile g_lost;  // what is stored here is known to nobody once the next one is

}  // namespace

// --- Leaks: the culprit is the allocating function ----------------------------------------------

void slow_leak() {
  for (unsigned i = 0; step(); ++i)
    if (i % 10 == 0) g_lost = touched(96 << 10);
}

void fast_leak() {
  while (step())
    for (int i = 0; i < 100; ++i) g_lost = touched(1000);
}

void leak_after_warm_up() {
  std::vector<char*> loaded;
  while (loaded.size() < 50) loaded.push_back(touched(1 << 20));
  while (step())
    for (int i = 0; i < 8; ++i) g_lost = touched(10'000);
}

void growing_map() {
  auto& seen = *new std::map<unsigned, std::string>;
  for (unsigned i = 0; step();)
    for (int n = 0; n < 100; ++n) seen[i++] = std::string(900, 'x');
}

void leak_in_thread() {
  while (step())
    for (int i = 0; i < 25; ++i) g_lost = touched(1000);
}

void leaking_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(leak_in_thread);
  for (std::thread& thread : threads) thread.join();
}

void forgotten_mapping() {
  for (unsigned i = 0; step(); ++i) {
    if (i % 10 != 0) continue;
    g_lost = mmap(nullptr, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
}

// One of eight blocks is not freed.
void leaks_one_of_eight() {
  unsigned count = 0;
  while (step()) {
    for (int i = 0; i < 200; ++i) {
      char* const block = touched(4000);
      if (++count % 8 == 0)
        g_lost = block;
      else
        std::free(block);
    }
  }
}

void endless_buffer() {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; step(); ++i) {
    if (i % 5 != 0) continue;
    bytes += 256 << 10;
    buffer = static_cast<char*>(std::realloc(buffer, bytes));
    std::memset(buffer, 1, bytes);
  }
}

// --- Not leaks ----------------------------------------------------------------------------------

void steady_work() {
  while (step())
    for (int i = 0; i < 200; ++i) std::free(touched(8000));
}

void warm_up() {
  std::vector<char*> loaded;
  double part = 0;
  while (step(&part)) {
    while (part < 0.3 && static_cast<double>(loaded.size()) < part * 4000)
      loaded.push_back(touched(40'000));
    std::free(touched(40'000));
  }
}

void early_block() {
  g_lost = touched(200 << 20);
  while (step()) std::free(touched(8000));
}

// Input is written out whenever the buffer is full.
void sawtooth() {
  std::vector<char*> buffered;
  while (step()) {
    for (int i = 0; i < 40; ++i) buffered.push_back(touched(10'000));
    if (buffered.size() < 1600) continue;
    for (char* const block : buffered) std::free(block);
    buffered.clear();
  }
}

// Full after a third of the time; then each new entry replaces an old one.
void cache_that_levels_off() {
  std::vector<char*> cache;
  double part = 0;
  unsigned random = 1;
  while (step(&part)) {
    const auto wanted = static_cast<std::size_t>(std::min(part * 3, 1.0) * 3000);
    for (int i = 0; i < 30 || cache.size() < wanted; ++i) {
      if (cache.size() < wanted) {
        cache.push_back(touched(10'000));
      } else if (!cache.empty()) {
        random = random * 1103515245 + 12345;
        char*& place = cache[(random >> 8) % cache.size()];
        std::free(place);
        place = touched(10'000);
      }
    }
  }
}

void grown_then_freed() {
  std::vector<char*> blocks;
  double part = 0;
  while (step(&part)) {
    if (part < 0.75) {
      for (int i = 0; i < 20; ++i) blocks.push_back(touched(10'000));
    } else if (!blocks.empty()) {
      for (char* const block : blocks) std::free(block);
      blocks.clear();
    }
  }
}

// Doubles until everything fits, and is reused.
void bounded_buffer() {
  std::size_t bytes = 1 << 10;
  char* buffer = touched(bytes);
  for (unsigned i = 0; step(); ++i) {
    if (i % 10 != 0 || bytes >= 32 << 20) continue;
    bytes *= 2;
    buffer = static_cast<char*>(std::realloc(buffer, bytes));
    std::memset(buffer, 1, bytes);
  }
}

void worker() {
  std::vector<char*> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(touched(20'000));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (char* const block : blocks) std::free(block);
}

void short_threads() {
  while (step()) {
    std::thread first{worker};
    std::thread second{worker};
    first.join();
    second.join();
  }
}

int main(int count, char** arguments) {
  struct Case {
    const char* name;
    void (*run)();
  };
#define CASE(function) \
  { #function, function }
  constexpr Case kCases[] = {
      CASE(slow_leak),      CASE(fast_leak),          CASE(leak_after_warm_up),
      CASE(growing_map),    CASE(leaking_threads),    CASE(forgotten_mapping),
      CASE(endless_buffer), CASE(leaks_one_of_eight), CASE(steady_work),
      CASE(warm_up),        CASE(early_block),        CASE(sawtooth),
      CASE(bounded_buffer), CASE(grown_then_freed),   CASE(cache_that_levels_off),
      CASE(short_threads),
  };
  if (count != 3) return 2;
  g_begin = Clock::now();
  g_end = g_begin + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(std::atof(arguments[2])));
  for (const Case& one : kCases) {
    if (std::strcmp(one.name, arguments[1]) != 0) continue;
    one.run();
    std::printf("done %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
  }
  return 2;
}
