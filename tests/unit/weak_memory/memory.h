// The history of each watched location, and what a thread has seen of it. See weak_memory.h.
//
// A location is a word of 4 bytes. An access of 8 bytes is to two, and never gets a half of one
// store of 8 bytes with a half of another.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace oomrec::weak_memory {

// How far a thread has come in the history of each location; the first message if it has no entry.
class View {
 public:
  std::uint32_t of(std::uint32_t location) const {
    return location < seen_.size() ? seen_[location] : 0;
  }
  void raise(std::uint32_t location, std::uint32_t message) {
    if (seen_.size() <= location) seen_.resize(location + 1);
    if (seen_[location] < message) seen_[location] = message;
  }
  void join(const View& other) {
    for (std::uint32_t location = 0; location < other.seen_.size(); ++location)
      raise(location, other.seen_[location]);
  }

 private:
  std::vector<std::uint32_t> seen_;
};

struct Message {
  std::uint32_t value;
  std::uint64_t store;  // the number of the store, from 1 in the order of the writers; 0: initial
  View view;
};

struct Thread {
  View seen;
  View at_release;  // what its relaxed stores release: seen at the last release fence
  View to_acquire;  // what its next acquire fence adds: of the messages that it has loaded
};

enum class Order : std::uint8_t { relaxed, acquire, release, both, sequential };
constexpr bool acquires(Order order) { return order != Order::relaxed && order != Order::release; }
constexpr bool releases(Order order) { return order != Order::relaxed && order != Order::acquire; }

class Memory {
 public:
  void watch(std::uintptr_t start, std::uintptr_t end) { watched_.push_back({start, end}); }
  bool watches(std::uintptr_t address) const;

  // A writer's. A store is noted before it is made, and its value is read at the next access.
  void load_newest(Thread&, std::uintptr_t address, std::size_t bytes, Order);
  // Places what a change of this word finds.
  void place_newest(std::uintptr_t address, std::size_t bytes);
  void store(Thread&, std::uintptr_t address, std::size_t bytes, Order, const View* released);
  void finish_store();
  // What a load of the newest message would acquire: the release sequence of an exchange goes on.
  View newest_view(std::uintptr_t address, std::size_t bytes) const;

  using Choose = std::function<std::size_t(std::size_t)>;  // choose(n): a number below n
  // A reader's: places one of the possible values where it will load it from.
  void load_any(Thread&, std::uintptr_t address, std::size_t bytes, Order, const Choose&);
  // A load that fails if it does not find `expected`: so does each older value that differs.
  // Returns whether it is there; then nothing has been loaded yet.
  bool load_expected(Thread&, std::uintptr_t address, std::size_t bytes, const void* expected,
                     Order, const Choose&);

  void fence(Thread&, Order);

  // Whether another thread has stored to this word what this one has not seen.
  bool has_news(const Thread& thread, std::uintptr_t word) const {
    const std::uint32_t number = known(word);
    return thread.seen.of(number) + 1 < locations_[number].history.size();
  }

  // Places what the first `stores` stores leave.
  void place(std::uint64_t stores);
  std::uint64_t stores() const { return stores_; }

  void settle();

 private:
  struct Range {
    std::uintptr_t start, end;
  };
  struct Location {
    std::uintptr_t address;
    std::vector<Message> history;
  };
  static constexpr std::uintptr_t kBytes = 4;

  // Number 0 stands for each location that nobody has stored to: it has one message.
  std::uint32_t known(std::uintptr_t address) const;
  std::uint32_t known_or_added(std::uintptr_t address);
  void load_word(Thread&, std::uint32_t location, std::uint32_t message, Order);
  // The words of 8 bytes that a load spans, one after the other.
  struct Pair {
    std::uint32_t low, high;                                        // locations; 0: not loaded
    std::vector<std::pair<std::uint32_t, std::uint32_t>> possible;  // messages, oldest first
  };
  Pair pair_at(const Thread&, std::uintptr_t pair, std::uintptr_t address, std::size_t bytes,
               Order) const;
  void place(const Pair&, std::size_t choice);
  void load(Thread&, const Pair&, std::size_t choice, Order);
  std::uint32_t oldest_for(const Thread&, std::uint32_t location, Order) const;
  static bool are_of_same_stores(const Location& low, std::size_t at_low, const Location& high,
                                 std::size_t at_high);

  std::vector<Range> watched_;
  std::vector<Location> locations_{Location{0, {{}}}};
  std::unordered_map<std::uintptr_t, std::uint32_t> numbers_;  // of the locations
  std::uint64_t stores_ = 0;

  // Of threads that meet: what sequentially consistent accesses and fences so far have seen.
  View at_accesses_, at_fences_;

  struct {
    std::vector<std::uint32_t> locations;
    View view;
  } pending_;  // the latest store
};

}  // namespace oomrec::weak_memory
