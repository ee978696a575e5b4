#include "tools/processes/attach/loaded_copies.h"

#include <algorithm>

namespace oomrec::tools::processes {

bool is_recorder(const RemoteModule& module) { return module.file_name().starts_with("liboomrec"); }

CopyState state_of(const RemoteMemory& memory, const RemoteModule& copy) {
  CopyState state = CopyState::unused;
  const std::uint64_t flag = copy.address_of("oomrec_attached");
  return flag != 0 && memory.read(flag, state) ? state : CopyState::unused;
}

const RemoteModule* recording_copy(const RemoteMemory& memory,
                                   const std::vector<RemoteModule>& modules) {
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const RemoteModule& module) {
    return is_recorder(module) && state_of(memory, module) == CopyState::records;
  });
  return found != modules.end() ? &*found : nullptr;
}

const RemoteModule* any_recording_copy(const RemoteMemory& memory,
                                       const std::vector<RemoteModule>& modules) {
  if (const RemoteModule* const attached = recording_copy(memory, modules)) return attached;
  const auto found = std::find_if(modules.begin(), modules.end(), is_recorder);
  return found != modules.end() ? &*found : nullptr;
}

}  // namespace oomrec::tools::processes
