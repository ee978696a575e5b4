// What the folders above do at moments that only this one sees. recorder.cpp sets it, before the
// first event: nothing here includes them.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct ThreadState;

struct Callbacks {
  // A thread of a process that was forked unseen (a raw clone) has its first event.
  void (*fork_child)(InHook) noexcept;
  // A waiting child gets its session now; true when there is one.
  bool (*begin_session)(InHook) noexcept;
  // It is time for the tick.
  void (*tick)(InHook, ThreadState&, std::uint64_t now_ns) noexcept;
  // `share_bytes` more, or less, are in a space's published total.
  void (*published)(InHook, std::int64_t share_bytes) noexcept;
  // An event has used nodes, and there are so many that some should be forgotten.
  void (*forget)(InHook) noexcept;
};
inline constinit Callbacks g_callbacks{};

inline bool begin_waiting_session(InHook hook) noexcept { return g_callbacks.begin_session(hook); }

}  // namespace oomrec::recorder
