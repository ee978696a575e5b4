#include "tools/recording/reading/old_memory.h"

namespace oomrec::tools::recording {

OldMemory old_memory_of(const session::View& view) {
  OldMemory found;
  session::Holder holder;
  for (std::uint64_t i = 1; i < view.count(session::TableId::holders); ++i) {
    if (!view.read(session::TableId::holders, i, holder) ||
        holder.api != static_cast<std::uint16_t>(Api::inherited) || holder.live_bytes == 0)
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
