// Adds a node with a frame of its own to a session, without the index of the recorder's.
#pragma once

#include "recorder/session/writer.h"

namespace oomrec::tests {

// False: a table is full.
inline bool append_node(session::Session& session, std::uint32_t& node, std::uint32_t parent,
                        std::uint64_t word) {
  const InHook hook = OutsideHooks::in_hook();
  std::uint32_t frame = 0;
  return session.frames.append(hook, frame, [&](session::Frame& entry) { entry.word = word; }) &&
         session.nodes.append(hook, node, [&](session::NodeEntry& entry) {
           entry = {parent, frame};
         });
}

}  // namespace oomrec::tests
