// Threads allocate, fork, start threads, and load and unload libraries, all at once.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

static std::atomic<bool> stop{false};
static std::atomic<int> wrong{0};

static void allocate(unsigned seed) {
  void* held[64] = {};
  while (!stop) {
    void*& block = held[static_cast<unsigned>(rand_r(&seed)) % 64];
    std::free(block);
    const int kind = rand_r(&seed);
    const std::size_t bytes = 1 + static_cast<unsigned>(kind % 100 == 0 ? 200000 : kind % 3000);
    block = std::malloc(bytes);
    std::memset(block, 1, bytes < 64 ? bytes : 64);
  }
  for (void* block : held) std::free(block);
}

// The child allocates enough to start its own session, and forks again.
static void fork_and_wait() {
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      void* const block = std::malloc(2 << 20);
      std::memset(block, 1, 100);
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(0);
      waitpid(grandchild, nullptr, 0);
      std::free(block);
      _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
  }
}

static void load_and_unload() {
  const char* const libraries[] = {"libz.so.1", "libsqlite3.so.0", "libexpat.so.1"};
  for (unsigned i = 0; !stop; ++i) {
    if (void* const library = dlopen(libraries[i % 3], RTLD_NOW | RTLD_LOCAL)) dlclose(library);
  }
}

static void start_threads() {
  while (!stop) {
    std::thread([] {
      static thread_local std::vector<char> local(1000);
      std::vector<char> block(100000, local[3]);
    }).join();
  }
}

int main() {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(allocate, i);
  for (auto* work : {fork_and_wait, load_and_unload, start_threads}) {
    threads.emplace_back(work);
    threads.emplace_back(work);
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d wrong\n", wrong.load());
}
