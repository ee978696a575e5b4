// threads THREADS PAIRS: CPU time of one malloc and free, in ns, on THREADS threads at once. With
// 0 threads one thread allocates the blocks and another frees them.
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu_time.h"

namespace {

constexpr std::size_t kBatch = 4096;  // blocks that are handed over at once: the lock costs nothing

[[gnu::noinline]] void* make(std::uint64_t number) {
  void* volatile block = std::malloc(48 + number % 64);
  return block;
}

// Using the result keeps every frame: no tail calls.
[[gnu::noinline]] unsigned make_and_free(unsigned depth, std::uint64_t pairs) {
  volatile char padding[40];
  padding[0] = static_cast<char>(depth);
  unsigned levels = 0;
  if (depth > 0) {
    levels = make_and_free(depth - 1, pairs);
  } else {
    for (std::uint64_t i = 0; i < pairs; ++i) std::free(make(i));
  }
  return levels + static_cast<unsigned>(padding[0] >= 0);
}

// Batches for the freeing thread: few, so that memory stays small.
class Belt {
 public:
  void put(std::vector<void*> batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return batches_.size() < 4; });
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }

  std::vector<void*> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !batches_.empty(); });
    std::vector<void*> batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<void*>> batches_;
};

void hand_over(std::uint64_t pairs) {
  Belt belt;
  const std::uint64_t batches = pairs / kBatch;
  std::thread consumer([&] {
    for (std::uint64_t i = 0; i < batches; ++i) {
      for (void* block : belt.take()) std::free(block);
    }
  });
  for (std::uint64_t i = 0; i < batches; ++i) {
    std::vector<void*> batch(kBatch);
    for (std::size_t j = 0; j < kBatch; ++j) batch[j] = make(j);
    belt.put(std::move(batch));
  }
  consumer.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const unsigned long threads = std::strtoul(argv[1], nullptr, 10);
  const std::uint64_t pairs = std::strtoull(argv[2], nullptr, 10);
  const double began = cpu_ns();
  if (threads == 0) {
    hand_over(pairs);
  } else {
    std::vector<std::thread> running;
    for (unsigned long i = 0; i < threads; ++i) {
      running.emplace_back([=] { make_and_free(20, pairs / threads); });
    }
    for (std::thread& thread : running) thread.join();
  }
  print_figure((cpu_ns() - began) / static_cast<double>(pairs));
}
