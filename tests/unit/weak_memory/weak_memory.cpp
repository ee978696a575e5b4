#include "tests/unit/weak_memory/weak_memory.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

#include "tests/unit/weak_memory/accesses.h"

namespace oomrec::weak_memory {

namespace {

enum class Phase : std::uint8_t { off, writing, reading, reading_after_death, meeting };

// A load of the reader that could return one of several values.
struct Choice {
  std::size_t taken, possible;
};

// A thread of a meeting. Others run until its next access that they may notice.
struct Coroutine {
  const std::function<void()>* body = nullptr;
  Thread thread;
  bool has_ended = false;
  bool must_pause = false;          // before its next access
  const void* waits_for = nullptr;  // a lock
  ucontext_t context{};
};

// Their stacks, which are not watched.
constexpr std::size_t kMostThreads = 4, kStackBytes = 256 * 1024;
alignas(16) char g_stacks[kMostThreads][kStackBytes];
bool is_on_stack(std::uintptr_t address) {
  return address - reinterpret_cast<std::uintptr_t>(g_stacks) < sizeof g_stacks;
}

struct Meeting {
  std::vector<std::unique_ptr<Coroutine>> threads;
  std::size_t current = 0;
  ucontext_t scheduler{};
  // Words that threads found changed by others, in any of the runs so far. A thread pauses after it
  // has stored to one.
  std::unordered_set<std::uintptr_t> contended;
  bool has_learned = false;  // another word that threads share: all runs are to be made again
};

struct Model {
  Phase phase = Phase::off;
  Memory memory;
  std::map<unsigned, Thread> writers;
  Thread* thread = nullptr;
  std::vector<Choice> choices;
  std::size_t next_choice = 0;
  bool at_work = false;  // its own copies of memory do not count
  Meeting meeting;
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
  if (possible == 1 || g_model.meeting.has_learned) return 0;
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

Coroutine& current() { return *g_model.meeting.threads[g_model.meeting.current]; }

// Lets another thread of the meeting run.
void pause() {
  g_model.at_work = false;
  Coroutine& thread = current();
  thread.must_pause = false;
  swapcontext(&thread.context, &g_model.meeting.scheduler);
}

// An access is about to be made. False: it does not count.
bool begins(std::uintptr_t address) {
  g_model.memory.finish_store();
  if (!g_model.memory.watches(address) || is_on_stack(address)) return false;
  if (g_model.phase == Phase::meeting && current().must_pause) {
    pause();
    g_model.at_work = true;
  }
  return true;
}

// Whether threads of the meeting access these bytes without having seen each other's stores: their
// order matters. What they do under a lock does not count.
bool is_contended(std::uintptr_t address, std::size_t bytes) {
  Meeting& meeting = g_model.meeting;
  bool contended = false;
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < address + bytes; at += 4) {
    if (g_model.memory.has_news(*g_model.thread, at) && meeting.contended.insert(at).second)
      meeting.has_learned = true;
    contended |= meeting.contended.contains(at);
  }
  return contended;
}

// Elsewhere the order of all sequentially consistent accesses is not known.
Order order_now(Order order) {
  return order == Order::sequential && g_model.phase != Phase::meeting ? Order::both : order;
}

// A thread that finds a lock taken waits until it is free: it would spin.
void wait_for_lock(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  g_model.memory.place_newest(at, sizeof(std::uint32_t));
  while (*static_cast<const volatile std::uint32_t*>(address) != 0) {
    current().waits_for = address;
    pause();
    g_model.at_work = true;
    g_model.memory.place_newest(at, sizeof(std::uint32_t));
  }
  current().waits_for = nullptr;
}

}  // namespace

// --- Accesses -----------------------------------------------------------------------------------

void load(const void* address, std::size_t bytes, Order order) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  order = order_now(order);
  if (g_model.phase == Phase::meeting)
    current().must_pause = is_contended(at, bytes) && order == Order::sequential;
  if (g_model.phase == Phase::writing) {
    g_model.memory.load_newest(*g_model.thread, at, bytes, order);
  } else if (g_model.phase != Phase::reading_after_death) {
    g_model.memory.load_any(*g_model.thread, at, bytes, order, choose);
  }
}

void load_to_change(const void* address, std::size_t bytes, Order order) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase == Phase::meeting) {
    is_contended(at, bytes);
    g_model.memory.place_newest(at, bytes);
  }
  g_model.memory.load_newest(*g_model.thread, at, bytes, order_now(order));
}

bool finds(const void* address, std::size_t bytes, const void* expected, Order order) {
  const auto is_there = [&] { return std::memcmp(address, expected, bytes) == 0; };
  if (is_off()) return is_there();
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return is_there();
  order = order_now(order);
  if (g_model.phase == Phase::reading) {
    g_model.memory.load_any(*g_model.thread, at, bytes, order, choose);
  } else if (g_model.phase == Phase::meeting) {
    const std::uint32_t free = 0;
    if (bytes == sizeof free && std::memcmp(expected, &free, bytes) == 0) {
      wait_for_lock(address);
      return true;
    }
    const bool contended = is_contended(at, bytes);
    const bool found =
        g_model.memory.load_expected(*g_model.thread, at, bytes, expected, order, choose);
    current().must_pause = !found && contended && order == Order::sequential;
    return found;
  } else if (g_model.phase == Phase::writing && !is_there()) {
    g_model.memory.load_newest(*g_model.thread, at, bytes, order);
  }
  return is_there();
}

void store(const void* address, std::size_t bytes, Order order, const View* released) {
  if (is_off()) return;
  const Work work;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!begins(at)) return;
  if (g_model.phase == Phase::meeting) {
    g_model.memory.place_newest(at, bytes);  // a part of a word may stay as it is
    current().must_pause = is_contended(at, bytes);
  } else if (g_model.phase != Phase::writing) {
    end("a reader stores to watched memory");
  }
  g_model.memory.store(*g_model.thread, at, bytes, order_now(order), released);
}

void fence(Order order) {
  if (is_off()) return;
  const Work work;
  g_model.memory.finish_store();
  const bool meets = g_model.phase == Phase::meeting;
  if (meets && current().must_pause) {
    pause();
    g_model.at_work = true;
  }
  g_model.memory.fence(*g_model.thread, order_now(order));
  if (meets) current().must_pause = order == Order::sequential;
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

namespace {

void run_thread() {
  Coroutine& thread = current();
  (*thread.body)();
  g_model.at_work = true;
  g_model.memory.finish_store();
  g_model.at_work = false;
  thread.has_ended = true;
  swapcontext(&thread.context, &g_model.meeting.scheduler);
}

void begin_thread(std::size_t number) {
  Coroutine& thread = *g_model.meeting.threads[number];
  thread.thread = {};
  thread.has_ended = thread.must_pause = false;
  thread.waits_for = nullptr;
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = g_stacks[number];
  thread.context.uc_stack.ss_size = kStackBytes;
  makecontext(&thread.context, run_thread, 0);
}

bool may_go_on(const Coroutine& thread) {
  if (thread.has_ended || thread.waits_for == nullptr) return !thread.has_ended;
  g_model.memory.place_newest(reinterpret_cast<std::uintptr_t>(thread.waits_for),
                              sizeof(std::uint32_t));
  return *static_cast<const volatile std::uint32_t*>(thread.waits_for) == 0;
}

void run_threads() {
  auto& threads = g_model.meeting.threads;
  for (std::size_t i = 0; i < threads.size(); ++i) begin_thread(i);
  for (;;) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < threads.size(); ++i)
      if (may_go_on(*threads[i])) ready.push_back(i);
    if (ready.empty()) break;
    g_model.meeting.current = ready[choose(ready.size())];
    g_model.thread = &current().thread;
    g_model.phase = Phase::meeting;
    swapcontext(&g_model.meeting.scheduler, &current().context);
    g_model.phase = Phase::off;
  }
  for (const auto& thread : threads)
    if (!thread->has_ended) end("threads of a meeting wait for each other");
}

}  // namespace

std::uint64_t meet(const std::vector<std::function<void()>>& threads,
                   const std::function<void()>& check) {
  settle();
  auto& meeting = g_model.meeting;
  meeting.contended.clear();
  meeting.threads.clear();
  if (threads.size() > kMostThreads) end("too many threads in a meeting");
  for (const auto& body : threads) {
    meeting.threads.push_back(std::make_unique<Coroutine>());
    meeting.threads.back()->body = &body;
  }
  std::uint64_t runs = 0;
  for (bool goes_on = true; goes_on; ++runs) {
    g_model.next_choice = 0;
    run_threads();
    g_model.memory.place(g_model.memory.stores());
    check();
    g_model.memory.place(0);
    settle();
    if (std::exchange(meeting.has_learned, false)) {
      g_model.choices.clear();
    } else {
      goes_on = next_choices();
    }
  }
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
