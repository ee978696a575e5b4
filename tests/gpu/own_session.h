// What the preloaded recorder has written about this very process: its session's file, read from
// beside. So a test calls a driver and looks at once what was made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/session/view.h"

namespace oomrec::own_session {

const session::View& view();
void reopen();  // in a fork's child, which has a session of its own

// The driver's number of the device at an entry; -1: none.
int ordinal_of(std::uint32_t entry);

struct Figures {
  std::uint64_t counted, managed, pool_used, pool_reserved, peak, free, total, limit;
};
Figures figures(session::Vendor, int ordinal);  // all 0: it was not met yet

inline std::int64_t live_bytes(Space space) { return view().totals(space).live_bytes; }
inline std::int64_t live_count(Space space) { return view().totals(space).live_count; }

// What holders of a space hold, all together: as many bytes and blocks as the space has.
struct Held {
  std::uint64_t bytes = 0, count = 0;
};
Held held(Space);

// The entries of the table of blocks that are live and have memory of this space.
Held blocks_of(Space);
struct Block {
  std::uint64_t bytes;
  int ordinal;
  std::uint32_t references;
  bool is_live;
};
std::optional<Block> block_at(session::DeviceKey, std::uint64_t key);

// Events of GPUs, by all threads, since the last call.
std::vector<session::Event> new_events();

struct Refusal {
  Api api;
  Space space;
  std::uint64_t bytes;
  int error;
  int ordinal;
  bool by_us;
  std::uint32_t node;
  session::DeviceEvidence device;
};
std::uint64_t refusals();
Refusal last_refusal();

// Whether a function that this program exports is on a stack.
bool is_on_stack(std::uint32_t node, std::string_view function);

}  // namespace oomrec::own_session
