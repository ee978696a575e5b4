// A running recorder in the test's process, which leaves no session file behind.
#pragma once

#include <doctest/doctest.h>

#include "recorder/events/heap.h"
#include "recorder/recorder.h"
#include "recorder/session/writer.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "tests/unit/recorder/doubles.h"

namespace oomrec::running {

inline constexpr std::uint64_t kMiB = 1 << 20;
inline const InHook kHook = OutsideHooks::in_hook();

inline void need(Mode mode, std::uint64_t recording_size = 0) {
  if (recorder::is_active()) return;
  Options options;
  options.mode = mode;
  options.session_dir = "/tmp";
  options.quiet = true;
  options.recording_size = recording_size;
  REQUIRE(recorder::start(options));
  recorder::set_block_distance(5);  // as glibc's
  session::g_session.remove_file(kHook);
}

// A block's usable size, rounded like an allocator's.
inline std::uint64_t usable(std::uint64_t bytes) { return (bytes + 24) & ~std::uint64_t{15}; }

// A block identified by its size.
inline void allocate(std::uint64_t address, std::uint64_t bytes, Space space = Space::heap) {
  recorder::on_allocate(kHook, {space, Api::malloc, address, bytes, usable(bytes)});
}
inline recorder::Released release(std::uint64_t address, std::uint64_t bytes,
                                  Space space = Space::heap) {
  return recorder::on_free(kHook, space, Api::free, address, usable(bytes));
}

// Invariant of exact mode: live entries of a space = Σ live_count of its holders, and the same for
// bytes. For space map: the ranges that count. False: violated.
inline bool holders_agree() {
  using namespace session;
  std::uint64_t holder_bytes[kSpaceCount] = {}, holder_count[kSpaceCount] = {};
  const View view = g_session.view();
  for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
    Holder holder;
    if (!view.holder(i, holder)) return false;
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
  for (std::uint32_t i = 1; i < g_session.side_pages.size(); ++i) {
    view.for_each_small_block(i, [&](const SmallBlock& block) {
      bytes[static_cast<std::size_t>(Space::heap)] += block.bytes;
      count[static_cast<std::size_t>(Space::heap)] += 1;
    });
  }
  for (std::uint32_t i = 1; i < g_session.live_ranges.size(); ++i) {
    const LiveRange& range = g_session.live_ranges.at(i);
    if (range.start == 0 || range.holder == 0) continue;  // a reservation is a block without bytes
    if (range.kind == static_cast<std::uint32_t>(RangeKind::counted))
      bytes[static_cast<std::size_t>(Space::map)] += range.bytes;
    count[static_cast<std::size_t>(Space::map)] += 1;
  }
  for (std::size_t at = 0; at < kSpaceCount; ++at) {
    if (bytes[at] != holder_bytes[at] || count[at] != holder_count[at]) return false;
  }
  return true;
}

inline session::View::Totals totals(Space space) { return session::g_session.view().totals(space); }

// The number of a stack's holder; 0: none.
inline std::uint32_t number_of_holder(std::uint32_t stack, Space space) {
  for (std::uint32_t i = 1; i < session::g_session.holders.size(); ++i) {
    const session::HolderEntry& holder = session::g_session.holders.at(i);
    const std::uint64_t frame = session::g_session.node(holder.node).frame;
    if (holder.space == static_cast<std::uint8_t>(space) &&
        frame == session::native_frame(0, stack))
      return i;
  }
  return 0;
}

// Without the unpublished sums of lanes. A full one is the entry itself, a brief one is valid until
// the next call.
inline const session::Holder& raw_holder_of(std::uint32_t stack, Space space) {
  static session::Holder found;
  const std::uint32_t number = number_of_holder(stack, space);
  if (const session::Holder* const full = live::find_full(number)) return *full;
  session::g_session.view().read(session::TableId::holders, number, found);
  return found;
}

// Including the sums of lanes; valid until the next call. nullptr: none.
inline const session::Holder* holder_of(std::uint32_t stack, Space space) {
  static session::Holder found;
  const std::uint32_t number = number_of_holder(stack, space);
  return number != 0 && session::g_session.view().holder(number, found) ? &found : nullptr;
}

}  // namespace oomrec::running
