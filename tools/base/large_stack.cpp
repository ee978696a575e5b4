#include "tools/base/large_stack.h"

#include <pthread.h>
#include <sys/resource.h>

#include <exception>

namespace oomrec::tools {
namespace {

constexpr std::size_t kBytes = 8 << 20;

struct Task {
  const std::function<void()>& work;
  std::exception_ptr thrown{};

  static void* run(void* argument) {
    Task& task = *static_cast<Task*>(argument);
    try {
      task.work();
    } catch (...) {
      task.thrown = std::current_exception();
    }
    return nullptr;
  }
};

bool has_large_stack() {
  struct rlimit stack {};
  return getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur >= kBytes;  // or unlimited
}

bool run_on_thread(Task& task) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_t thread;
  const bool started = pthread_attr_setstacksize(&attributes, kBytes) == 0 &&
                       pthread_create(&thread, &attributes, Task::run, &task) == 0;
  pthread_attr_destroy(&attributes);
  if (started) pthread_join(thread, nullptr);
  return started;
}

}  // namespace

void on_large_stack(const std::function<void()>& work) {
  Task task{work};
  if (has_large_stack() || !run_on_thread(task)) return work();
  if (task.thrown) std::rethrow_exception(task.thrown);
}

}  // namespace oomrec::tools
