#include "recorder/failures/signal_handlers.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/failures/crash.h"

// Where the kernel returns to from a handler; in the words by which debuggers know a signal frame.
asm(R"(
        .pushsection .text
        .p2align 4
        nop
oomrec_return_from_signal:
        mov     $15, %rax
        syscall
        .popsection
)");
extern "C" [[gnu::visibility("hidden")]] void oomrec_return_from_signal();

namespace oomrec::recorder {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT};
constexpr unsigned long kRestorer = 0x0400'0000;  // SA_RESTORER

constexpr std::size_t kStacks = 16;
constexpr std::size_t kStackBytes = 32 * 1024;
constexpr std::size_t kGuardBytes = 4096;  // the lowest page stays without access

struct Stacks {
  std::byte* bytes;                  // kStacks of them; null: there was no room
  std::atomic<int> owners[kStacks];  // thread ids; 0: nobody's yet
};
constinit Stacks g_stacks{};
constinit KernelAction g_before[std::size(kSignals)]{};

void on_signal(int signal, siginfo_t* info, void* context) noexcept;

long exchange(int signal, const KernelAction* action, KernelAction* before) noexcept {
  return system::call(SYS_rt_sigaction, signal, action, before, system::kSignalMaskBytes);
}

const void* own_handler() noexcept { return reinterpret_cast<const void*>(&on_signal); }

KernelAction* before_of(int signal) noexcept {
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) return &g_before[i];
  return nullptr;
}

// --- Stacks -------------------------------------------------------------------------------------

std::atomic<int>* owner_of(const void* stack) noexcept {
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(stack) - g_stacks.bytes);
  const bool is_ours = g_stacks.bytes != nullptr && offset < kStacks * kStackBytes;
  return is_ours ? &g_stacks.owners[offset / kStackBytes] : nullptr;
}

bool has_ended(int thread) noexcept {
  return system::call(SYS_tgkill, system::process_id(), thread, 0) == -ESRCH;
}

// A stack for the thread: its own of before, or one whose thread has ended. kStacks: none is left.
std::size_t claim_stack(int thread) noexcept {
  for (std::size_t i = 0; i < kStacks; ++i)
    if (g_stacks.owners[i].load(std::memory_order_relaxed) == thread) return i;
  for (std::size_t i = 0; i < kStacks; ++i) {
    int owner = g_stacks.owners[i].load(std::memory_order_relaxed);
    if ((owner == 0 || has_ended(owner)) &&
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
  stack.ss_sp = g_stacks.bytes + number * kStackBytes + kGuardBytes;
  stack.ss_size = kStackBytes - kGuardBytes;
  if (system::call(SYS_mprotect, stack.ss_sp, stack.ss_size, PROT_READ | PROT_WRITE) != 0) return;
  system::call(SYS_sigaltstack, &stack, nullptr);
}

// --- The handler --------------------------------------------------------------------------------

// A fault: its instruction will fault again. All else was sent, and comes but once.
bool comes_again(int signal, const siginfo_t& info) noexcept {
  return info.si_code > 0 && signal != SIGABRT &&
         !(signal == SIGBUS && info.si_code == BUS_MCEERR_AO);
}

// With every signal blocked: what is sent here arrives when the handler has returned.
void hand_on(int signal, siginfo_t& info, ucontext_t& interrupted) noexcept {
  // Where that is refused the fault finds its signal blocked, and the kernel ends the process, too.
  if (exchange(signal, before_of(signal), nullptr) != 0)
    interrupted.uc_sigmask.__val[0] |= 1UL << (signal - 1);
  if (!comes_again(signal, info)) {
    system::call(SYS_rt_tgsigqueueinfo, system::process_id(), system::thread_id(), signal, &info);
  }
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  auto& interrupted = *static_cast<ucontext_t*>(context);
  {
    const KeepErrno keep;
    const HookScope scope;
    // A crash of our own would only repeat itself.
    if (!scope.interrupted_recorder()) on_crash(scope.in_hook(), signal, *info, interrupted);
  }
  hand_on(signal, *info, interrupted);
}

}  // namespace

// Not in a variable: what scans those of every library must find nothing there that it cannot read.
void prepare_handlers() noexcept {
  const long mapped = system::call(SYS_mmap, nullptr, kStacks * kStackBytes, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped > 0) g_stacks.bytes = reinterpret_cast<std::byte*>(mapped);
}

void install_handlers(InHook) noexcept {
  install_signal_stack();
  KernelAction ours{};
  ours.handler = own_handler();
  ours.flags = SA_SIGINFO | SA_ONSTACK | kRestorer;
  ours.restorer = oomrec_return_from_signal;
  ours.mask = ~std::uint64_t{0};
  for (const int signal : kSignals) {
    KernelAction found{};
    if (exchange(signal, nullptr, &found) != 0 || found.handler != nullptr) continue;  // SIG_DFL
    *before_of(signal) = found;
    exchange(signal, &ours, &found);
    // Another thread of the program was faster.
    if (found.handler != nullptr && found.handler != ours.handler)
      exchange(signal, &found, nullptr);
  }
}

void remove_handlers(InHook) noexcept {
  for (const int signal : kSignals) {
    KernelAction found{};
    if (exchange(signal, nullptr, &found) == 0 && found.handler == own_handler())
      exchange(signal, before_of(signal), nullptr);
  }
}

const KernelAction* hidden_action(int signal, const void* handler) noexcept {
  return handler == own_handler() ? before_of(signal) : nullptr;
}

bool is_handler_stack(const void* low) noexcept { return owner_of(low) != nullptr; }

void reset_handlers_after_fork(InHook) noexcept {
  for (auto& owner : g_stacks.owners) owner.store(0, std::memory_order_relaxed);
  stack_t stack{};  // the forking thread has brought its own along
  if (system::call(SYS_sigaltstack, nullptr, &stack) != 0) return;
  if (std::atomic<int>* const owner = owner_of(stack.ss_sp); owner != nullptr)
    owner->store(system::thread_id(), std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
