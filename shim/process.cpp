// Hooks for the start, wait and end of processes and threads; and for the loader's errors.
//
// The real calls run outside any scope: fork handlers, destructors, signal handlers and
// cancellation inside them are the program's own, and their allocations are recorded. vfork has no
// hook, because parent and child would share its frame.
#include "shim/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system/hook_scope.h"
#include "common/system/syscalls.h"
#include "recorder/events/heap.h"
#include "recorder/failures/exit.h"
#include "recorder/failures/failures.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/process/ended_processes.h"
#include "recorder/recorder.h"
#include "recorder/runtimes/php.h"
#include "recorder/state/clock.h"
#include "recorder/state/request.h"
#include "recorder/state/thread_state.h"
#include "shim/gpu/driver.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"

extern "C" int on_exit(void (*)(int, void*), void*) __attribute__((weak));

namespace oomrec::shim {
namespace {

pid_t current_process() noexcept { return static_cast<pid_t>(system::call(SYS_getpid)); }

void report_failure(Api api, std::uint64_t bytes, int error) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return;
  const KeepErrno keep;
  recorder::on_failure(scope.in_hook(), {Space::map, api, bytes}, error,
                       recorder::FailedBy::system);
}

// A program whose threads' stacks fill its memory may make no other call that does.
void look_at_clock() noexcept {
  const HookScope scope;
  const KeepErrno keep;
  if (!scope.outermost()) return;
  if (recorder::ThreadState* const thread = recorder::current_thread(scope.in_hook()))
    recorder::read_clock(scope.in_hook(), *thread);
}

// Of the file that the loader's message begins with: "/lib/x.so: failed to map …". Newer releases
// of glibc do not say that this was the reason.
bool is_on_noexec(const char* message) noexcept {
  char path[1024];
  const char* const end = ::strstr(message, ": ");
  if (end == nullptr || static_cast<std::size_t>(end - message) >= sizeof path) return false;
  const auto length = static_cast<std::size_t>(end - message);
  ::memcpy(path, message, length);
  path[length] = '\0';
  struct statfs mounted {};
  return system::call(SYS_statfs, path, &mounted) == 0 && (mounted.f_flags & ST_NOEXEC) != 0;
}

// Whether a rule of --fail makes this thread or process fail: then it is recorded, and the result
// is EAGAIN.
bool is_failed_by_rule(Api api, std::uint64_t bytes) noexcept {
  const HookScope scope;
  if (!scope.outermost()) return false;
  const KeepErrno keep;
  recorder::Request request{Space::map, api, bytes};
  if (recorder::admits(scope.in_hook(), request, 0)) return false;
  recorder::on_failure(scope.in_hook(), request, EAGAIN, recorder::FailedBy::recorder);
  return true;
}

void begin_child() noexcept {
  const HookScope scope;
  recorder::on_fork_child(scope.in_hook());
  gpu::on_fork_child();
}

pid_t observe_fork(pid_t (*real)()) noexcept {
  if (recorder::has_fault_rules() && is_failed_by_rule(Api::fork, 0)) {
    errno = EAGAIN;
    return -1;
  }
  const bool inside_hook = !HookScope::idle();  // in a signal handler
  if (inside_hook) {
    const HookScope scope;
    recorder::before_fork_inside_hook(scope.in_hook());
  }
  const pid_t child = real();
  if (inside_hook) {
    const HookScope scope;
    const KeepErrno keep;
    recorder::after_fork_inside_hook(scope.in_hook(), child == 0);
  }
  if (child == 0)
    begin_child();
  else if (child < 0 && (errno == ENOMEM || errno == EAGAIN))
    report_failure(Api::fork, 0, errno);
  return child;
}

void observe_exit(int status) noexcept {
  if (!has_thread_storage()) return;
  const HookScope scope;
  const KeepErrno keep;
  recorder::on_exit(scope.in_hook(), status);
}

// Registered before any handler of the program, so it runs last and knows the status.
void at_exit(int status, void*) { observe_exit(status); }

void observe_child(pid_t child, int status) noexcept {
  if (child <= 0 || !(WIFEXITED(status) || WIFSIGNALED(status))) return;
  const HookScope scope;
  if (!scope.outermost()) return;
  const KeepErrno keep;
  recorder::on_child_status(scope.in_hook(), child, status);
}

// Recorded before the call, because the filter may affect other threads at once, even inside the
// recorder.
template <class Result, class Real>
Result observe_sandbox(Real real) noexcept {
  if (!has_thread_storage()) return real();
  {
    const HookScope scope;
    const KeepErrno keep;
    recorder::on_sandbox(scope.in_hook());
  }
  const Result result = real();
  if (result >= 0) return result;
  const HookScope scope;
  recorder::sandbox_failed(scope.in_hook());
  return result;
}

constinit decltype(&::pthread_attr_getstacksize) g_stack_size_of = nullptr;

// The stack size that a new thread would have had.
std::uint64_t stack_bytes(const pthread_attr_t* attributes) noexcept {
  size_t bytes = 0;
  if (attributes != nullptr && g_stack_size_of != nullptr &&
      g_stack_size_of(attributes, &bytes) == 0)
    return bytes;
  struct rlimit limit;
  if (system::call(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit) < 0) return 0;
  constexpr std::uint64_t kUnlimitedStack = std::uint64_t{2}
                                            << 20;  // glibc's ARCH_STACK_DEFAULT_SIZE
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimitedStack : limit.rlim_cur;
}

// Records the result of a wait function; the program may not have requested the status.
template <class Real>
pid_t observe_wait(int* status, Real real) {
  int own_status = 0;
  int* const found = status != nullptr ? status : &own_status;
  const pid_t child = real(found);
  observe_child(child, *found);
  return child;
}

}  // namespace

void start_exit() noexcept {
  recorder::start_php();
  static constinit bool registered = false;
  if (::on_exit != nullptr && !registered) registered = ::on_exit(at_exit, nullptr) == 0;
}

void find_stack_size_of() noexcept {
  g_stack_size_of = reinterpret_cast<decltype(g_stack_size_of)>(
      real_dlsym()(RTLD_DEFAULT, "pthread_attr_getstacksize"));
}

OOMREC_HOOK(pid_t, fork, ()) { return observe_fork(g_next.fork); }
OOMREC_HOOK(pid_t, _Fork, ()) { return observe_fork(g_next._Fork); }

// The parent ends inside the real call, by libc's own _exit. So its end is recorded before, as for
// an exec, and reverted if there was no fork; the child removes its recording.
OOMREC_HOOK(int, daemon, (int no_chdir, int no_close)) {
  const pid_t parent = current_process();
  {
    const HookScope scope;
    recorder::before_exec(scope.in_hook());
  }
  const int result = g_next.daemon(no_chdir, no_close);
  const KeepErrno keep;
  if (current_process() != parent) {
    {
      const HookScope scope;
      recorder::on_daemon_child(scope.in_hook());
    }
    begin_child();
    return result;
  }
  {
    const HookScope scope;
    recorder::exec_failed(scope.in_hook());
  }
  if (keep.value() == ENOMEM || keep.value() == EAGAIN) report_failure(Api::fork, 0, keep.value());
  return result;
}

OOMREC_HOOK(pid_t, wait, (int* status)) {
  return observe_wait(status, [](int* found) { return g_next.wait(found); });
}
OOMREC_HOOK(pid_t, waitpid, (pid_t pid, int* status, int options)) {
  return observe_wait(status, [&](int* found) { return g_next.waitpid(pid, found, options); });
}
OOMREC_HOOK(pid_t, wait3, (int* status, int options, void* usage)) {
  return observe_wait(status, [&](int* found) { return g_next.wait3(found, options, usage); });
}
OOMREC_HOOK(pid_t, wait4, (pid_t pid, int* status, int options, void* usage)) {
  return observe_wait(status, [&](int* found) { return g_next.wait4(pid, found, options, usage); });
}

OOMREC_HOOK(int, waitid, (int kind, unsigned id, siginfo_t* info, int options)) {
  siginfo_t own_info{};
  siginfo_t* const found = info != nullptr ? info : &own_info;
  const int result = g_next.waitid(kind, id, found, options);
  if (result != 0 || (options & WNOWAIT) != 0 || found->si_pid == 0) return result;
  if (found->si_code == CLD_EXITED)
    observe_child(found->si_pid, W_EXITCODE(found->si_status & 0xff, 0));
  else if (found->si_code == CLD_KILLED || found->si_code == CLD_DUMPED)
    observe_child(found->si_pid, found->si_status | (found->si_code == CLD_DUMPED ? WCOREFLAG : 0));
  return result;
}

// The other process' memory is read before the call, since a signal may end it at once.
OOMREC_HOOK(int, kill, (pid_t pid, int signal)) {
  if (!has_thread_storage() || !recorder::may_end_another(pid, signal))
    return g_next.kill(pid, signal);
  bool is_recorded = false;
  std::uint64_t resident_bytes = 0;
  {
    const HookScope scope;
    const KeepErrno keep;
    is_recorded = scope.outermost();
    if (is_recorded) resident_bytes = recorder::resident_bytes_of(scope.in_hook(), pid);
  }
  const int result = g_next.kill(pid, signal);
  if (result != 0 || !is_recorded) return result;
  const HookScope scope;
  const KeepErrno keep;
  recorder::on_signal_sent(scope.in_hook(), pid, signal, resident_bytes);
  return result;
}

// The result is EAGAIN for every cause, but errno differs: ENOMEM for the stack's mapping, EAGAIN
// for a limit on tasks.
OOMREC_HOOK(int, pthread_create,
            (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*),
             void* argument)) {
  if (recorder::has_fault_rules() &&
      is_failed_by_rule(Api::pthread_create, stack_bytes(attributes)))
    return EAGAIN;
  const int errno_before = errno;
  errno = 0;
  const int result = g_next.pthread_create(thread, attributes, start, argument);
  const int cause = errno;
  if (cause == 0) errno = errno_before;
  if (result == EAGAIN)
    report_failure(Api::pthread_create, stack_bytes(attributes), cause == ENOMEM ? ENOMEM : EAGAIN);
  if (result == 0) look_at_clock();
  return result;
}

OOMREC_HOOK(int, dlclose, (void* library)) {
  const int result = g_next.dlclose(library);
  const KeepErrno keep;
  gpu::on_library_closed();
  const HookScope scope;
  recorder::on_module_unload(scope.in_hook());
  return result;
}

// The loader's own mappings bypass the hooks: their failure is detected when the program calls
// dlerror. Too little space for static TLS is not lack of memory, nor is a file system that forbids
// execution.
OOMREC_HOOK(char*, dlerror, ()) {
  char* const message = g_next.dlerror();
  if (message == nullptr) return message;
  const bool about_mapping = ::strstr(message, "failed to map segment") != nullptr ||
                             ::strstr(message, "cannot map zero-fill pages") != nullptr;
  if (about_mapping && ::strstr(message, "not permitted") == nullptr && !is_on_noexec(message))
    report_failure(Api::dlopen, 0, ENOMEM);
  return message;
}

OOMREC_HOOK(int, prctl,
            (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)) {
  const auto real = [&] { return g_next.prctl(option, a, b, c, d); };
  return option == PR_SET_SECCOMP ? observe_sandbox<int>(real) : real();
}

// Called from the assembly hook of syscall for the few numbers that matter here.
extern "C" __attribute__((visibility("hidden"))) long oomrec_watched_syscall(long number, long a,
                                                                             long b, long c, long d,
                                                                             long e, long f) {
  if (number == SYS_exit_group) observe_exit(static_cast<int>(a));
  const auto real = [&] { return g_next.syscall(number, a, b, c, d, e, f); };
  const bool asks_for_filter = number == SYS_seccomp && a <= 1;  // strict or filter, not a query
  return asks_for_filter || (number == SYS_prctl && a == PR_SET_SECCOMP)
             ? observe_sandbox<long>(real)
             : real();
}

// Leaves no frame's destructor undone: the real function never returns here.
#define X(result, name, parameters, arguments)                          \
  OOMREC_HOOK(result, name, parameters) {                               \
    if (recorder::g_is_php.load(std::memory_order_relaxed)) {           \
      const HookScope scope;                                            \
      const KeepErrno keep;                                             \
      if (scope.outermost()) recorder::on_php_bailout(scope.in_hook()); \
    }                                                                   \
    g_next.name arguments;                                              \
  }
OOMREC_LONG_JUMPS(X)
#undef X

// Continues by a jump: the stack of the abort has no frame of ours.
OOMREC_HOOK(void, abort, ()) {
  {
    const HookScope scope;
    const KeepErrno keep;
    if (scope.outermost()) recorder::on_abort(scope.in_hook());
  }
  g_next.abort();
}

OOMREC_HOOK(void, _exit, (int status)) {
  observe_exit(status);
  g_next._exit(status);
  __builtin_unreachable();
}
OOMREC_HOOK(void, _Exit, (int status)) {
  observe_exit(status);
  g_next._Exit(status);
  __builtin_unreachable();
}
OOMREC_HOOK(void, quick_exit, (int status)) {
  observe_exit(status);
  g_next.quick_exit(status);
  __builtin_unreachable();
}

}  // namespace oomrec::shim
