// The model itself, by the litmus tests that every weak memory model is known by.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "tests/unit/weak_memory/weak_memory.h"

using namespace oomrec;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

struct alignas(64) Shared {
  std::atomic<int> data{0}, flag{0};
  std::atomic<std::uint64_t> word{0};
  std::uint32_t halves[2] = {};
};

// Its words are watched, and zero.
class Litmus {
 public:
  Litmus() { weak_memory::watch(&shared, sizeof shared); }
  ~Litmus() { weak_memory::reset(); }
  Litmus(const Litmus&) = delete;
  Litmus& operator=(const Litmus&) = delete;

  // The pairs that `reader` returns.
  template <class Reader>
  std::set<std::pair<int, int>> outcomes(Reader reader) {
    std::set<std::pair<int, int>> all;
    weak_memory::read([&] { all.insert(reader()); });
    return all;
  }

  // The first writer's message.
  void send(std::memory_order store) {
    weak_memory::write(1, [&] {
      shared.data.store(1, relaxed);
      shared.flag.store(1, store);
    });
  }
  // What a reader sees of `flag`, and then of `data`.
  std::set<std::pair<int, int>> messages(std::memory_order load) {
    return outcomes([&] {
      const int flag = shared.flag.load(load);
      return std::pair{flag, shared.data.load(relaxed)};
    });
  }

  Shared shared;
};

using Outcomes = std::set<std::pair<int, int>>;
const Outcomes kAny = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
const Outcomes kOrdered = {{0, 0}, {0, 1}, {1, 1}};  // {flag, data}

}  // namespace

TEST_CASE("message passing needs a release and an acquire") {
  for (const auto store : {relaxed, release}) {
    for (const auto load : {relaxed, acquire}) {
      Litmus test;
      test.send(store);
      CHECK(test.messages(load) == (store == release && load == acquire ? kOrdered : kAny));
    }
  }
}

TEST_CASE("a fence orders as well, on the right side of the access") {
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      Litmus test;
      Shared& shared = test.shared;
      weak_memory::write(1, [&] {
        shared.data.store(1, relaxed);
        if (before) std::atomic_thread_fence(release);
        shared.flag.store(1, relaxed);
        if (!before) std::atomic_thread_fence(release);
      });
      const auto seen = test.outcomes([&] {
        if (!after) std::atomic_thread_fence(acquire);
        const int first = shared.flag.load(relaxed);
        if (after) std::atomic_thread_fence(acquire);
        return std::pair{first, shared.data.load(relaxed)};
      });
      CHECK(seen == (before && after ? kOrdered : kAny));
    }
  }
}

TEST_CASE("one location never goes back") {
  Litmus test;
  Shared& shared = test.shared;
  weak_memory::write(1, [&] {
    shared.data.store(1, relaxed);
    shared.data.store(2, relaxed);
  });
  const auto seen = test.outcomes([&] {
    const int first = shared.data.load(relaxed);
    return std::pair{first, shared.data.load(relaxed)};
  });
  CHECK(seen == Outcomes{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}});
}

TEST_CASE("an exchange by another thread goes on with the release, a store does not") {
  for (const bool exchange : {false, true}) {
    Litmus test;
    Shared& shared = test.shared;
    test.send(release);
    weak_memory::write(2, [&] {
      if (exchange) {
        shared.flag.fetch_add(1, relaxed);
      } else {
        shared.flag.store(2, relaxed);
      }
    });
    const Outcomes seen = test.messages(acquire);
    CHECK(seen.contains({2, 0}) == !exchange);
    CHECK(!seen.contains({1, 0}));
  }
}

TEST_CASE("what a writer has acquired, it releases") {
  for (const auto order : {relaxed, acquire}) {
    Litmus test;
    Shared& shared = test.shared;
    weak_memory::write(1, [&] {
      shared.data.store(1, relaxed);
      shared.word.store(1, release);
    });
    weak_memory::write(2, [&] {
      if (shared.word.load(order) == 1) shared.flag.store(1, release);
    });
    const Outcomes seen = test.messages(acquire);
    CHECK(seen.contains({1, 0}) == (order == relaxed));
    CHECK(seen.contains({1, 1}));
  }
}

TEST_CASE("a word is read whole, two halves are not, nor is a copy of several words") {
  Litmus test;
  Shared& shared = test.shared;
  weak_memory::write(1, [&] {
    shared.word.store(1 | std::uint64_t{1} << 32, relaxed);
    shared.halves[0] = 1;
    shared.halves[1] = 1;
  });
  const auto of_word = test.outcomes([&] {
    const std::uint64_t seen = shared.word.load(relaxed);
    return std::pair{static_cast<int>(seen), static_cast<int>(seen >> 32)};
  });
  CHECK(of_word == Outcomes{{0, 0}, {1, 1}});
  const auto of_halves = test.outcomes([&] {
    std::uint32_t copy[2];
    std::memcpy(copy, shared.halves, sizeof copy);
    return std::pair<int, int>{copy[0], copy[1]};
  });
  CHECK(of_halves == kAny);
}

TEST_CASE(
    "a killed writer leaves a prefix of its stores, and nothing of a settled past is a choice") {
  Litmus test;
  Shared& shared = test.shared;
  test.send(relaxed);
  Outcomes left;
  const auto reader = [&] { left.insert({shared.flag.load(relaxed), shared.data.load(relaxed)}); };
  CHECK(weak_memory::read_after_each_store(reader) == 3);
  CHECK(left == kOrdered);

  weak_memory::settle();
  left.clear();
  CHECK(weak_memory::read(reader) == 1);
  CHECK(left == Outcomes{{1, 1}});
}

// The pairs of what each of two threads that meet has found.
Outcomes meet(const std::function<int()>& one, const std::function<int()>& other) {
  Outcomes all;
  int of_one = 0, of_other = 0;
  weak_memory::meet({[&] { of_one = one(); }, [&] { of_other = other(); }}, [&] {
    all.insert({of_one, of_other});
  });
  return all;
}

TEST_CASE("two threads that store, and then load what the other stores") {
  constexpr auto sequential = std::memory_order_seq_cst;
  const auto met = [](std::memory_order store, std::memory_order load, bool one_fence,
                      bool other_fence) {
    Litmus test;
    Shared& shared = test.shared;
    return meet(
        [&] {
          shared.data.store(1, store);
          if (one_fence) std::atomic_thread_fence(sequential);
          return shared.flag.load(load);
        },
        [&] {
          shared.flag.exchange(1, store == relaxed ? relaxed : std::memory_order_acq_rel);
          if (other_fence) std::atomic_thread_fence(sequential);
          return shared.data.load(load);
        });
  };
  CHECK(met(relaxed, relaxed, false, false) == kAny);
  CHECK(met(release, acquire, false, false) == kAny);
  CHECK(met(relaxed, relaxed, true, false) == kAny);
  CHECK(met(relaxed, relaxed, true, true) == Outcomes{{0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("sequentially consistent accesses, on one side with a fence") {
  constexpr auto sequential = std::memory_order_seq_cst;
  for (const auto store : {release, sequential}) {
    for (const auto load : {acquire, sequential}) {
      for (const bool fence : {false, true}) {
        Litmus test;
        Shared& shared = test.shared;
        const Outcomes seen = meet(
            [&] {
              shared.data.store(1, store);
              return shared.flag.load(load);
            },
            [&] {
              shared.flag.store(1, relaxed);
              if (fence) std::atomic_thread_fence(sequential);
              return shared.data.load(relaxed);
            });
        CHECK(seen.contains({0, 0}) == !(fence && store == sequential && load == sequential));
        CHECK(seen.contains({1, 1}));
      }
    }
  }
}

TEST_CASE("of two threads that change a word from the same value, one fails") {
  Litmus test;
  Shared& shared = test.shared;
  const auto change = [&] {
    int zero = 5;
    return shared.data.compare_exchange_strong(zero, 1) ? 1 : 0;
  };
  shared.data = 5;
  CHECK(meet(change, change) == Outcomes{{0, 1}, {1, 0}});
  CHECK(shared.data == 5);  // as before
}

TEST_CASE("what two threads do under a lock is not mixed, and each sees the other's") {
  Litmus test;
  Shared& shared = test.shared;
  const auto add = [&] {
    for (int free = 0; !shared.flag.compare_exchange_strong(free, 1, acquire, relaxed); free = 0) {
    }
    const auto before = static_cast<int>(shared.halves[0]);
    shared.halves[0] = static_cast<std::uint32_t>(before + 1);
    shared.flag.store(0, release);
    return before;
  };
  CHECK(meet(add, add) == Outcomes{{0, 1}, {1, 0}});
}

TEST_CASE("a thread that meets another sees its message as a reader does") {
  for (const auto store : {relaxed, release}) {
    for (const auto load : {relaxed, acquire}) {
      Litmus test;
      Shared& shared = test.shared;
      Outcomes seen;
      std::pair<int, int> found;
      weak_memory::meet({[&] {
                           shared.data.store(1, relaxed);
                           shared.flag.store(1, store);
                         },
                         [&] {
                           found.first = shared.flag.load(load);
                           found.second = shared.data.load(relaxed);
                           shared.word.store(1, relaxed);
                         }},
                        [&] { seen.insert(found); });
      CHECK(seen == (store == release && load == acquire ? kOrdered : kAny));
    }
  }
}
