#include "tests/fake_gpu/core/entry.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/rules.h"

namespace fake_gpu {
namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
bool g_started = false;
thread_local bool t_inside = false;
thread_local int t_failure = 0;

void enter() {
  if (t_inside) {  // a real driver would hang here; a test should fail
    static const char kMessage[] = "fake_gpu: called by a thread that is inside the driver\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    std::abort();
  }
  pthread_mutex_lock(&g_lock);
  t_inside = true;
}

void leave() {
  t_inside = false;
  pthread_mutex_unlock(&g_lock);
}

// A driver does not survive fork.
__attribute__((constructor)) void expect_fork() {
  pthread_atfork(nullptr, nullptr, [] {
    g_lock = PTHREAD_MUTEX_INITIALIZER;
    g_started = false;
    t_inside = false;
  });
}

int check_ready(Needs needs) {
  if (needs != Needs::nothing && !g_started) return not_initialized;
  return needs == Needs::context ? check_current() : int{success};
}

int make_ready(Needs needs) {
  if (needs == Needs::nothing) return success;
  if (device_count() == 0) return no_device;
  return needs == Needs::context ? use_primary(thread_device()) : int{success};
}

}  // namespace

Entry::Entry(Function& function, Needs needs) {
  function.calls.fetch_add(1, std::memory_order_relaxed);
  delay(function);
  enter();
  void* volatile note = std::malloc(24);
  std::free(note);
  failure_ = vendor.implicit_contexts ? make_ready(needs) : check_ready(needs);
  if (failure_ == success) failure_ = failure_by_rule(function);
}

Entry::~Entry() { leave(); }

Outside::Outside() { leave(); }
Outside::~Outside() { enter(); }

int note(int result) {
  if (result != success) t_failure = result;
  return result;
}

int last_failure() { return t_failure; }
void forget_failure() { t_failure = success; }

void start() { g_started = true; }

}  // namespace fake_gpu
