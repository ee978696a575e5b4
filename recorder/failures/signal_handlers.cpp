#include "recorder/failures/signal_handlers.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "common/machine/page.h"
#include "common/machine/signal_return.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/failures/crash.h"

namespace oomrec::recorder {
namespace {

// SIGILL and SIGTRAP: __builtin_trap(), with which V8, Rust and sanitized programs give up.
// SIGFPE: a division by the size of what was refused.
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGTRAP, SIGFPE};

constexpr std::size_t kStacks = 16;
constexpr std::size_t kUsableBytes = 28 * 1024;

// Of a stack, whose lowest page stays inaccessible.
std::size_t stack_bytes() noexcept {
  return machine::page_up(kUsableBytes) + machine::page_bytes();
}

struct Stacks {
  std::byte* bytes;                  // of all kStacks; null: there was no memory
  std::atomic<int> owners[kStacks];  // thread ids; 0: free
};
constinit Stacks g_stacks{};
constinit KernelAction g_previous[std::size(kSignals)]{};

void on_signal(int signal, siginfo_t* info, void* context) noexcept;

long exchange(int signal, const KernelAction* action, KernelAction* before) noexcept {
  return system::call(SYS_rt_sigaction, signal, action, before, system::kSignalMaskBytes);
}

const void* own_handler() noexcept { return reinterpret_cast<const void*>(&on_signal); }

KernelAction* previous_action(int signal) noexcept {
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) return &g_previous[i];
  return nullptr;
}

// --- Stacks -------------------------------------------------------------------------------------

std::atomic<int>* owner_of(const void* stack) noexcept {
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(stack) - g_stacks.bytes);
  const bool is_ours = g_stacks.bytes != nullptr && offset < kStacks * stack_bytes();
  return is_ours ? &g_stacks.owners[offset / stack_bytes()] : nullptr;
}

bool has_exited(int thread) noexcept {
  return system::call(SYS_tgkill, system::process_id(), thread, 0) == -ESRCH;
}

// A stack for the thread: the one it has, or one whose thread has exited. kStacks: none is left.
std::size_t claim_stack(int thread) noexcept {
  for (std::size_t i = 0; i < kStacks; ++i)
    if (g_stacks.owners[i].load(std::memory_order_relaxed) == thread) return i;
  for (std::size_t i = 0; i < kStacks; ++i) {
    int owner = g_stacks.owners[i].load(std::memory_order_relaxed);
    if ((owner == 0 || has_exited(owner)) &&
        g_stacks.owners[i].compare_exchange_strong(owner, thread, std::memory_order_relaxed))
      return i;
  }
  return kStacks;
}

void install_signal_stack() noexcept {
  stack_t stack{};
  if (g_stacks.bytes == nullptr || system::call(SYS_sigaltstack, nullptr, &stack) != 0 ||
      (stack.ss_flags & SS_DISABLE) == 0)
    return;
  const std::size_t number = claim_stack(system::thread_id());
  if (number == kStacks) return;
  stack = {};
  stack.ss_sp = g_stacks.bytes + number * stack_bytes() + machine::page_bytes();
  stack.ss_size = stack_bytes() - machine::page_bytes();
  if (system::call(SYS_mprotect, stack.ss_sp, stack.ss_size, PROT_READ | PROT_WRITE) != 0) return;
  system::call(SYS_sigaltstack, &stack, nullptr);
}

// --- The handler --------------------------------------------------------------------------------

// A fault's instruction will raise it again. Any other signal was sent, and arrives only once, and
// so does a breakpoint's.
bool recurs(int signal, const siginfo_t& info) noexcept {
  return info.si_code > 0 && signal != SIGABRT && signal != SIGTRAP &&
         !(signal == SIGBUS && info.si_code == BUS_MCEERR_AO);
}

// Every signal is blocked: what is sent here arrives after the handler has returned.
void forward_signal(int signal, siginfo_t& info, ucontext_t& interrupted) noexcept {
  // If the action cannot be restored, block the signal: a fault then ends the process just the
  // same.
  if (exchange(signal, previous_action(signal), nullptr) != 0)
    interrupted.uc_sigmask.__val[0] |= 1UL << (signal - 1);
  if (!recurs(signal, info)) {
    system::call(SYS_rt_tgsigqueueinfo, system::process_id(), system::thread_id(), signal, &info);
  }
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  {
    const KeepErrno keep;
    const HookScope scope;
    // A crash of the recorder's own would only recur.
    if (!scope.interrupted_recorder()) on_crash(scope.in_hook(), signal, *info, interrupted);
  }
  forward_signal(signal, *info, interrupted);
}

}  // namespace

// Mapped, not a variable: garbage collectors scan every library's variables, and may not read
// PROT_NONE.
void prepare_handlers() noexcept {
  if (g_stacks.bytes != nullptr) return;  // by an earlier recording: a thread may have one
  const long mapped = system::call(SYS_mmap, nullptr, kStacks * stack_bytes(), PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped > 0) g_stacks.bytes = reinterpret_cast<std::byte*>(mapped);
}

void install_handlers(InHook) noexcept {
  install_signal_stack();
  KernelAction ours{};
  ours.handler = own_handler();
  ours.flags = SA_SIGINFO | SA_ONSTACK | machine::kSignalReturnFlag;
  ours.restorer = machine::kSignalReturn;
  ours.mask = ~std::uint64_t{0};
  for (const int signal : kSignals) {
    KernelAction found{};
    if (exchange(signal, nullptr, &found) != 0 || found.handler != nullptr) continue;  // SIG_DFL
    *previous_action(signal) = found;
    exchange(signal, &ours, &found);
    // Another thread installed its handler meanwhile: keep that one.
    if (found.handler != nullptr && found.handler != ours.handler)
      exchange(signal, &found, nullptr);
  }
}

void remove_handlers(InHook) noexcept {
  for (const int signal : kSignals) {
    KernelAction found{};
    if (exchange(signal, nullptr, &found) == 0 && found.handler == own_handler())
      exchange(signal, previous_action(signal), nullptr);
  }
}

const KernelAction* hidden_action(int signal, const void* handler) noexcept {
  return handler == own_handler() ? previous_action(signal) : nullptr;
}

bool is_handler_stack(const void* low) noexcept { return owner_of(low) != nullptr; }

void reset_handlers_after_fork(InHook) noexcept {
  for (auto& owner : g_stacks.owners) owner.store(0, std::memory_order_relaxed);
  stack_t stack{};  // the forking thread keeps its stack
  if (system::call(SYS_sigaltstack, nullptr, &stack) != 0) return;
  if (std::atomic<int>* const owner = owner_of(stack.ss_sp); owner != nullptr)
    owner->store(system::thread_id(), std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
