// Calls all functions of a View, trusting every value: for damaged sessions, where the only
// requirement is to return. The sum prevents the compiler from removing calls.
#pragma once

#include <algorithm>

#include "common/session/view.h"

namespace oomrec::session {

// Reads the first and the last entries of a table; a forged count may be huge.
template <class T, class Each>
void read_some(const View& view, TableId table, Each each) {
  const u64 count = view.count(table);
  T entry{};
  for (u64 index = 0; index < std::min<u64>(count, 300); ++index) {
    if (view.read(table, index, entry)) each(entry);
  }
  for (u64 index = count - std::min<u64>(count, 20); index < count + 2; ++index) {
    if (view.read(table, index, entry)) each(entry);
  }
}

inline u64 read_events(const View& view, const Lane& lane) {
  const u64 next = lane.ring_next;
  const u64 slots = std::min<u64>(lane.ring_slots, 64);
  Event event{};
  u64 sum = 0;
  for (u64 number = next - std::min(next, slots); number != next; ++number) {
    if (view.event(lane, number, event)) sum += event.bytes;
  }
  return sum;
}

inline u64 exercise(const View& view) {
  u64 sum = static_cast<u64>(view.problem()) + view.format() + static_cast<u64>(life_of(view));
  if (view.problem() != Problem::none) return sum;
  const auto count_string = [&](StringId id) {
    for (const char c : view.string(id)) sum += static_cast<unsigned char>(c);
  };
  const auto count_stack = [&](u32 node) {
    sum += view.walk(node, [&](u64 frame) { sum += frame; });
  };

  const Header& header = view.header();
  for (const StringId id : {header.command_line, header.executable, header.working_directory,
                            header.dump_directory, header.off_reason, header.heap_note,
                            header.allocator, header.program, header.preexisting_objects.load()}) {
    count_string(id);
  }
  for (StringId id = 0; id < 400; ++id) count_string(id);
  read_some<Node>(view, TableId::nodes, [&](const Node& node) { count_stack(node.parent); });
  read_some<Holder>(view, TableId::holders,
                    [&](const Holder& holder) { count_stack(holder.node); });
  read_some<LiveBlock>(view, TableId::live_blocks,
                       [&](const LiveBlock& block) { sum += block.address; });
  read_some<LiveRange>(view, TableId::live_ranges,
                       [&](const LiveRange& range) { sum += range.bytes; });
  read_some<Thread>(view, TableId::threads,
                    [&](const Thread& thread) { count_string(thread.group); });
  read_some<Lane>(view, TableId::lanes, [&](const Lane& lane) { sum += read_events(view, lane); });
  read_some<Failure>(view, TableId::failures,
                     [&](const Failure& failure) { count_stack(failure.node); });
  read_some<Module>(view, TableId::modules,
                    [&](const Module& module) { count_string(module.path); });
  read_some<Code>(view, TableId::codes, [&](const Code& code) { count_string(code.line_table); });
  read_some<Point>(view, TableId::points, [&](const Point& point) { sum += point.rss_bytes; });
  read_some<Checkpoint>(view, TableId::checkpoints,
                        [&](const Checkpoint& entry) { sum += u64{entry.first_row} + entry.rows; });
  read_some<CheckpointRow>(view, TableId::checkpoint_rows,
                           [&](const CheckpointRow& row) { sum += row.live_bytes; });
  read_some<Mark>(view, TableId::marks, [&](const Mark& mark) { count_string(mark.text); });
  view.for_each_sum([&](const View::PendingSum& pending) {
    Holder holder{};
    if (view.holder(pending.sum.holder, holder)) sum += holder.temporary_count + holder.live_bytes;
  });
  for (u32 table = 0; table < 2 * kTableSlots; ++table)
    sum += view.count(static_cast<TableId>(table));
  for (u32 space = 0; space < 2 * kLaneSpaces; ++space) {
    sum += view.totals(static_cast<Space>(space)).allocated_bytes;
  }
  return sum;
}

}  // namespace oomrec::session
