#include "tools/recording/reading/old_memory.h"

#include "common/session/table.h"

namespace oomrec::tools::recording {

OldMemory old_memory_of(const session::View& view) {
  OldMemory found;
  for (const auto& holder : session::entries<session::Holder>(view, session::TableId::holders)) {
    if (holder.api != static_cast<std::uint16_t>(Api::inherited) || holder.live_bytes == 0)
      continue;
    if (!session::is_preexisting(view, holder.node)) {
      found.inherited = true;
      continue;
    }
    const auto space = static_cast<Space>(holder.space);
    found.preexisting = true;
    found.heap = found.heap || space == Space::heap;
    found.mappings = found.mappings || space == Space::map;
    found.devices = found.devices || is_device_space(space);
  }
  return found;
}

}  // namespace oomrec::tools::recording
