// A recorder that runs in this test's process, without a session file left behind.
#pragma once

#include <doctest/doctest.h>

#include "recorder/counters.h"
#include "recorder/recorder.h"
#include "recorder/session/writer.h"
#include "recorder/state.h"
#include "tests/unit/recorder/doubles.h"

namespace oomrec::running {

inline const InHook kHook = OutsideHooks::in_hook();

inline void need(Mode mode, std::uint64_t recording_size = 0) {
  if (recorder::is_active()) return;
  Options options;
  options.mode = mode;
  options.session_dir = "/tmp";
  options.quiet = true;
  options.recording_size = recording_size;
  REQUIRE(recorder::start(options));
  session::g_session.remove_file(kHook);
}

// A block, known by its size; `usable` as an allocator would round it.
inline void allocate(std::uint64_t address, std::uint64_t bytes, Space space = Space::heap) {
  recorder::on_allocate(kHook,
                        {space, Api::malloc, address, bytes, (bytes + 24) & ~std::uint64_t{15}});
}
inline recorder::Released release(std::uint64_t address, std::uint64_t bytes,
                                  Space space = Space::heap) {
  return recorder::on_free(kHook, space, Api::free, address, (bytes + 24) & ~std::uint64_t{15});
}

// Invariant of exact mode: live entries of a space = Σ live_count of its holders, bytes likewise;
// for space map the ranges that count. False: it does not hold.
inline bool holders_agree() {
  using namespace session;
  std::uint64_t holder_bytes[kSpaceCount] = {}, holder_count[kSpaceCount] = {};
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    const Holder& holder = g_session.holders.at(i);
    holder_bytes[holder.space] += holder.live_bytes;
    holder_count[holder.space] += holder.live_count;
  }
  std::uint64_t bytes[kSpaceCount] = {}, count[kSpaceCount] = {};
  for (std::uint32_t i = 1; i < g_session.live_blocks.size(); ++i) {
    const LiveBlock& block = g_session.live_blocks.at(i);
    if (block.address == 0) continue;
    const auto space = g_session.holders.at(block.holder).space;
    bytes[space] += block.bytes * block.weight;
    count[space] += block.weight;
  }
  for (std::uint32_t i = 1; i < g_session.live_ranges.size(); ++i) {
    const LiveRange& range = g_session.live_ranges.at(i);
    if (range.start == 0 || range.kind != static_cast<std::uint32_t>(RangeKind::counted)) continue;
    bytes[static_cast<std::size_t>(Space::map)] += range.bytes;
    count[static_cast<std::size_t>(Space::map)] += 1;
  }
  for (std::size_t at = 0; at < kSpaceCount; ++at) {
    if (bytes[at] != holder_bytes[at] || count[at] != holder_count[at]) return false;
  }
  return true;
}

inline session::View::Totals totals(Space space) { return session::g_session.view().totals(space); }

inline session::Holder* holder_of(std::uint32_t stack, Space space) {
  session::Holder* found = nullptr;
  for (std::uint32_t i = 1; i < session::g_session.holders.size(); ++i) {
    session::Holder& holder = session::g_session.holders.at(i);
    const std::uint64_t frame = session::g_session.nodes.at(holder.node).frame;
    if (holder.space == static_cast<std::uint8_t>(space) &&
        frame == session::native_frame(0, stack, false, false))
      found = &holder;
  }
  return found;
}

}  // namespace oomrec::running
