#include "recorder/helper/clone.h"

#include <cerrno>

#include "common/machine/stack_switch.h"
#include "common/system/syscalls.h"

namespace oomrec::helper {

long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept {
  if (system::is_sandboxed()) return -EPERM;
  return machine::clone_onto(stack_top, flags, pid, word, run, argument);
}

}  // namespace oomrec::helper
