// Requests whose call paths are ever new, with a constant amount of live memory.
//
//   ever_new_stacks leak REQUESTS BYTES   then 40 MiB in blocks of BYTES in leak(), and SIGKILL
//   ever_new_stacks sites REQUESTS BYTES     likewise, but the blocks of all requests stay
//   ever_new_stacks threads REQUESTS BYTES   each of 8 threads also keeps blocks in a function of
//                                            its own, then SIGKILL
//   ever_new_stacks forks REQUESTS           the process forks while it serves; each child serves
//                                            as many, and ends
//   ever_new_stacks forever                  leaks first, and serves until it is killed; writes a
//                                            line once it has begun
//
// Each prints a sum over what its requests returned. A block whose content has changed ends it with
// exit code 3.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <pthread.h>

namespace {

using Turns = std::uint64_t;
constexpr int kTurns = 24, kBitsOfTurn = 2, kChildren = 12, kThreads = 8;
constexpr std::size_t kLive = 2000, kLeaked = 40u << 20, kKept = 100;

struct Block {
  std::uint64_t* content = nullptr;
  std::size_t words = 0;
  std::uint64_t mark = 0;
};

Block request(std::uint64_t number) {
  Block block{nullptr, 20 + number % 100, number * 0x9E3779B97F4A7C15u};
  block.content = static_cast<std::uint64_t*>(malloc(block.words * sizeof block.mark));
  block.content[0] = block.content[block.words - 1] = block.mark;
  return block;
}

Block left(Turns turns, int depth, std::uint64_t number);
Block right(Turns turns, int depth, std::uint64_t number);
Block straight(Turns turns, int depth, std::uint64_t number);

// Each call in its own line is another frame.
#define TURN                                                                     \
  if (depth == 0) return request(number);                                        \
  const Turns further = turns >> kBitsOfTurn;                                    \
  switch (turns & ((1u << kBitsOfTurn) - 1)) {                                   \
    case 0:                                                                      \
      return left(further, depth - 1, number);                                   \
    case 1:                                                                      \
      return right(further, depth - 1, number);                                  \
    case 2:                                                                      \
      return straight(further, depth - 1, number);                               \
    default:                                                                     \
      Block block = straight(further, depth - 1, number);                        \
      block.mark ^= block.content[0] ^ block.mark; /* not the same call again */ \
      return block;                                                              \
  }

[[gnu::noinline]] Block left(Turns turns, int depth, std::uint64_t number) { TURN }
[[gnu::noinline]] Block right(Turns turns, int depth, std::uint64_t number) { TURN }
[[gnu::noinline]] Block straight(Turns turns, int depth, std::uint64_t number){TURN}

std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9u;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
  return number ^ (number >> 31);
}

std::uint64_t checked(const Block& block) {
  if (block.content[0] != block.mark || block.content[block.words - 1] != block.mark) _exit(3);
  return block.mark;
}

class Service {
 public:
  constexpr Service(std::uint64_t seed) : seed_(seed << 32) {}

  void serve(std::uint64_t requests) {
    for (; requests > 0; --requests, ++served_) {
      Block& place = live_[served_ % kLive];
      if (place.content != nullptr) {
        sum_ += checked(place);
        free(place.content);
      }
      place = left(mixed(seed_ + served_), kTurns, served_);
    }
  }
  void serve_and_hold(std::uint64_t requests) {
    for (; requests > 0; --requests, ++served_)
      sum_ += checked(left(mixed(seed_ + served_), kTurns, served_));
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t seed_;
  std::uint64_t served_ = 0, sum_ = 0;
  Block live_[kLive];
};

constinit Service g_service{1};
constinit Service g_services[kThreads]{100, 101, 102, 103, 104, 105, 106, 107};
std::uint64_t g_requests;
std::size_t g_bytes;

[[gnu::noinline]] void leak(std::size_t bytes) {
  for (std::size_t leaked = 0; leaked < kLeaked; leaked += bytes) {
    void* volatile block = malloc(bytes);
    memset(block, 1, bytes);
  }
}

template <int kThread>
[[gnu::noinline]] void keep() {
  void* volatile block = malloc(g_bytes + kThread * 1000);
  memset(block, 1, g_bytes);
}

template <int kThread>
void* serve_and_keep(void*) {
  for (std::size_t kept = 0; kept < kKept; ++kept) {
    g_services[kThread].serve(g_requests / kKept);
    keep<kThread>();
  }
  return nullptr;
}

template <int... kThread>
std::uint64_t in_threads(std::integer_sequence<int, kThread...>) {
  pthread_t threads[kThreads];
  (pthread_create(&threads[kThread], nullptr, serve_and_keep<kThread>, nullptr), ...);
  std::uint64_t sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], nullptr);
    sum += g_services[i].sum();
  }
  return sum;
}

// How many children ended otherwise than well.
int serve_and_fork() {
  int wrong = 0;
  for (int i = 0; i < kChildren; ++i) {
    g_service.serve(g_requests / kChildren);
    const pid_t child = fork();
    if (child == 0) {
      // On what it inherited, and then with a child of its own.
      g_service.serve(g_requests / kChildren);
      const pid_t grandchild = fork();
      g_service.serve(g_requests / kChildren);
      if (grandchild == 0) _exit(0);
      int status = 0;
      waitpid(grandchild, &status, 0);
      _exit(status == 0 ? 0 : 4);
    }
    if (i % 2 == 0) continue;  // two at a time
    for (int ended = 0, status = 0; ended < 2; ++ended) wrong += wait(&status) <= 0 || status != 0;
  }
  return wrong;
}

void print(std::uint64_t sum) {
  printf("%llu\n", static_cast<unsigned long long>(sum));
  fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  g_requests = count > 2 ? strtoull(words[2], nullptr, 10) : 0;
  g_bytes = count > 3 ? strtoull(words[3], nullptr, 10) : 0;
  if (strcmp(words[1], "leak") == 0) {
    g_service.serve(g_requests);
    leak(g_bytes);
    print(g_service.sum());
    raise(SIGKILL);
  } else if (strcmp(words[1], "sites") == 0) {
    g_service.serve_and_hold(g_requests);
    leak(g_bytes);
    print(g_service.sum());
    raise(SIGKILL);
  } else if (strcmp(words[1], "threads") == 0) {
    print(in_threads(std::make_integer_sequence<int, kThreads>{}));
    raise(SIGKILL);
  } else if (strcmp(words[1], "forks") == 0) {
    const int wrong = serve_and_fork();
    print(g_service.sum());
    return wrong == 0 ? 0 : 1;
  } else if (strcmp(words[1], "forever") == 0) {
    leak(10'000'000);  // those who hold little leave no bundle
    for (bool begun = false;; begun = true) {
      g_service.serve(begun ? 1000 : 20'000);
      if (!begun) print(g_service.sum());
    }
  }
  return 2;
}
