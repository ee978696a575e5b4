// Reads the session file that the preloaded recorder writes for this process, so that a test can
// call a driver and check the recording immediately.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/session/view.h"

namespace oomrec::own_session {

const session::View& view();
void reopen();  // in a forked child, which has its own session

// The driver's ordinal of a device entry; -1: none.
int ordinal_of(std::uint32_t entry);

struct Figures {
  std::uint64_t counted, managed, pool_used, pool_reserved, peak, free, total, limit;
};
Figures figures(session::Vendor, int ordinal);  // all 0: not seen yet

inline std::int64_t live_bytes(Space space) { return view().totals(space).live_bytes; }
inline std::int64_t live_count(Space space) { return view().totals(space).live_count; }

// The sums over all holders of a space, which equal the space's totals.
struct Held {
  std::uint64_t bytes = 0, count = 0;
};
Held held(Space);

// Live entries in the table of blocks with memory of this space.
Held blocks_of(Space);
struct Block {
  std::uint64_t bytes;
  int ordinal;
  std::uint32_t references;
  bool is_live;
};
std::optional<Block> block_at(session::DeviceKey, std::uint64_t key);

// GPU events of all threads since the last call.
std::vector<session::Event> new_events();

struct Failure {
  Api api;
  Space space;
  std::uint64_t bytes;
  int error;
  int ordinal;
  bool by_us;
  std::uint32_t node;
  session::DeviceEvidence device;
};
std::uint64_t failures();
Failure last_failure();

// Whether an exported function of this program is on a stack.
bool is_on_stack(std::uint32_t node, std::string_view function);

}  // namespace oomrec::own_session
