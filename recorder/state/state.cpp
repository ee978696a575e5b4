#include "recorder/state/state.h"

#include "common/system/files.h"

namespace oomrec::recorder {

constinit State g_state;

bool same_process() noexcept {
  return system::is_sandboxed() || system::process_id() == g_state.pid;
}

}  // namespace oomrec::recorder
