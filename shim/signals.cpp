// Signals: hides the recorder's handlers and signal stacks from the program.
//
// Async-signal-safe, like the real functions: records nothing and enters no scope, except at an
// interpreter's end.
#include <signal.h>

#include <cstring>

#include "common/system/hook_scope.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/signal_handlers.h"
#include "recorder/python/uncaught.h"
#include "shim/interpose/export.h"
#include "shim/interpose/next.h"

namespace oomrec::shim {
namespace {

using recorder::KernelAction;

const KernelAction* hidden(int number, sighandler_t handler) noexcept {
  return recorder::hidden_action(number, reinterpret_cast<const void*>(handler));
}

int hide_action(int result, int number, struct sigaction* before) noexcept {
  if (result != 0 || before == nullptr) return result;
  if (const KernelAction* const own = hidden(number, before->sa_handler); own != nullptr) {
    std::memset(before, 0, sizeof *before);
    before->sa_flags = static_cast<int>(own->flags);
    before->sa_restorer = own->restorer;
    std::memcpy(&before->sa_mask, &own->mask, sizeof own->mask);
  }
  return result;
}

// Python resets SIGINT when it ends.
void observe_default_action(int number, const struct sigaction* action) noexcept {
  if (number != SIGINT || action == nullptr || action->sa_handler != SIG_DFL) return;
  const stack::Uncaught uncaught = stack::uncaught_memory_error();
  if (uncaught.type.empty()) return;
  const HookScope scope;
  const KeepErrno keep;
  if (scope.outermost())
    recorder::report_uncaught(scope.in_hook(), uncaught.type, uncaught.is_of_worker);
}

}  // namespace

OOMREC_HOOK(int, sigaction,
            (int number, const struct sigaction* action, struct sigaction* before)) {
  observe_default_action(number, action);
  return hide_action(g_next.sigaction(number, action, before), number, before);
}
OOMREC_HOOK(int, __sigaction,
            (int number, const struct sigaction* action, struct sigaction* before)) {
  return hide_action(g_next.__sigaction(number, action, before), number, before);
}

#define X(result, name, parameters, arguments)                   \
  OOMREC_HOOK(result, name, parameters) {                        \
    const sighandler_t before = g_next.name arguments;           \
    return hidden(number, before) != nullptr ? SIG_DFL : before; \
  }
OOMREC_OLD_SIGNAL_FUNCTIONS(X)
#undef X

OOMREC_HOOK(int, sigaltstack, (const stack_t* stack, stack_t* before)) {
  const int result = g_next.sigaltstack(stack, before);
  if (result == 0 && before != nullptr && recorder::is_handler_stack(before->ss_sp))
    *before = {nullptr, SS_DISABLE, 0};
  return result;
}

}  // namespace oomrec::shim
