#include "tests/unit/weak_memory/weak_memory.h"

#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/unit/weak_memory/accesses.h"

namespace oomrec::weak_memory {

namespace {

enum class Phase : std::uint8_t { off, writing, reading, reading_after_death };

// A load of the reader that could return one of several values.
struct Choice {
  std::size_t taken, possible;
};

struct Model {
  Phase phase = Phase::off;
  Memory memory;
  std::map<unsigned, Thread> writers;
  Thread* thread = nullptr;
  std::vector<Choice> choices;
  std::size_t next_choice = 0;
  bool at_work = false;  // its own copies of memory do not count
};
Model g_model;

// Ends with the model's work on an access.
class Work {
 public:
  Work() { g_model.at_work = true; }
  ~Work() { g_model.at_work = false; }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
};
bool is_off() { return g_model.phase == Phase::off || g_model.at_work; }

[[noreturn]] void end(const char* why) {
  std::fprintf(stderr, "weak_memory: %s\n", why);
  std::abort();
}

std::size_t choose(std::size_t possible) {
  if (possible == 1) return 0;
  if (g_model.next_choice == g_model.choices.size()) g_model.choices.push_back({0, possible});
  const Choice& choice = g_model.choices[g_model.next_choice++];
  if (choice.possible != possible) end("the reader does not repeat what it did");
  return choice.taken;
}

// False: all have been tried.
bool next_choices() {
  auto& choices = g_model.choices;
  while (!choices.empty() && choices.back().taken + 1 == choices.back().possible)
    choices.pop_back();
  if (choices.empty()) return false;
  ++choices.back().taken;
  return true;
}

// An access is about to be made. False: it does not count.
bool begins(std::uintptr_t address) {
  g_model.memory.finish_store();
  return g_model.memory.watches(address);
}

}  // namespace

// --- Accesses -----------------------------------------------------------------------------------

void load(const void* address, std::size_t bytes, Order order) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase == Phase::writing) {
    g_model.memory.load_newest(*g_model.thread, at, bytes, order);
  } else if (g_model.phase == Phase::reading) {
    g_model.memory.load_any(*g_model.thread, at, bytes, order, choose);
  }
}

void store(const void* address, std::size_t bytes, Order order, const View* released) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase != Phase::writing) end("a reader stores to watched memory");
  g_model.memory.store(*g_model.thread, at, bytes, order, released);
}

void fence(Order order) {
  if (is_off()) return;
  const Work work;
  g_model.memory.finish_store();
  Thread& thread = *g_model.thread;
  if (acquires(order)) thread.seen.join(thread.to_acquire);
  if (releases(order)) thread.at_release = thread.seen;
}

View released_by_newest(const void* address, std::size_t bytes) {
  if (is_off()) return {};
  const Work work;
  return g_model.memory.newest_view(reinterpret_cast<std::uintptr_t>(address), bytes);
}

// --- Writers and readers ------------------------------------------------------------------------

void watch(const void* start, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(start);
  g_model.memory.watch(from, from + bytes);
}

void reset() {
  g_model.memory = {};
  g_model.writers.clear();
}

void settle() {
  g_model.memory.settle();
  g_model.writers.clear();
}

void write(unsigned thread, const std::function<void()>& body) {
  g_model.thread = &g_model.writers[thread];
  g_model.phase = Phase::writing;
  body();
  g_model.phase = Phase::off;
  g_model.memory.finish_store();
}

std::uint64_t read(const std::function<void()>& body) {
  std::uint64_t runs = 0;
  do {
    Thread reader;
    g_model.thread = &reader;
    g_model.next_choice = 0;
    g_model.phase = Phase::reading;
    body();
    g_model.phase = Phase::off;
    ++runs;
  } while (next_choices());
  g_model.memory.place(g_model.memory.stores());
  return runs;
}

std::uint64_t read_after_each_store(const std::function<void()>& body) {
  const std::uint64_t stores = g_model.memory.stores();
  for (std::uint64_t number = 0; number <= stores; ++number) {
    g_model.memory.place(number);
    g_model.phase = Phase::reading_after_death;
    body();
    g_model.phase = Phase::off;
  }
  return stores + 1;
}

}  // namespace oomrec::weak_memory
