#include "recorder/session/writer.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "common/system/syscalls.h"
#include "recorder/session/alive.h"

namespace oomrec::session {

constinit Session g_session;
static_assert(std::is_trivially_destructible_v<Session>);

namespace {

using system::call;

constexpr u32 kThreadRingSlots = 256;
constexpr u32 kMainRingSlots = 4096;
constexpr u32 kExactMainRingSlots = 16384;
constexpr u32 kThreadSums = 128;  // of exact mode: a page, and one more for their temporaries
constexpr u32 kMainSums = 1024;
constexpr u32 kProbedOwners = 8;

bool has_ended(i32 pid, i32 tid) noexcept { return call(SYS_tgkill, pid, tid, 0) == -ESRCH; }

// The lanes of long-lived threads are adjacent: with consecutive probes some searches would find
// only lanes in use, and the number of lanes would grow with every thread ever started.
constexpr u32 scattered(u32 number) noexcept {
  return static_cast<u32>(u64{number} * 0x9e37'79b9 >> 8);  // 2^32 / the golden ratio
}

}  // namespace

bool Session::open_tables(InHook hook) noexcept {
  const auto open = [&](auto& table, TableId id) {
    return table.open(hook, arena, header_->tables[static_cast<u32>(id)], table.kShape, 1);
  };
  constexpr Chunks kStrings{1};
  constexpr u64 kNoString = sizeof(u32);  // string 0, so that ids stay aligned
  return strings_.open(hook, arena, header_->tables[static_cast<u32>(TableId::strings)], kStrings,
                       kNoString) &&
         open(nodes, TableId::nodes) && open(holders, TableId::holders) &&
         open(live_blocks, TableId::live_blocks) && open(live_ranges, TableId::live_ranges) &&
         open(threads, TableId::threads) && open(lanes, TableId::lanes) &&
         open(failures, TableId::failures) && open(modules, TableId::modules) &&
         open(codes, TableId::codes) && open(points, TableId::points) &&
         open(checkpoints, TableId::checkpoints) &&
         open(checkpoint_rows, TableId::checkpoint_rows) && open(marks, TableId::marks) &&
         (mode_ != Mode::exact || open(side_pages, TableId::side_pages));
}

bool Session::open_devices(InHook hook) noexcept {
  const auto open = [&](auto& table, TableId id) {
    return table.open(hook, arena, header_->tables[static_cast<u32>(id)], table.kShape, 1);
  };
  if (!active_ || !open(devices, TableId::devices) ||
      !open(device_blocks, TableId::device_blocks) ||
      !open(device_points, TableId::device_points) || !open(api_tallies, TableId::api_tallies))
    return false;
  u32 entry = 0;
  for (std::size_t api = 0; api < kApiCount; ++api)
    if (!api_tallies.append(hook, entry, [](Tally&) noexcept {})) return false;
  return true;
}

void Session::detach(InHook hook) noexcept {
  if (header_ == nullptr) return;
  arena.close(hook, robust_list_in_use() ? FirstPage::zeros : FirstPage::unmapped);
  std::construct_at(this);
}

void Session::mark(InHook, State state, std::int32_t status) noexcept {
  if (!active_) return;
  header_->exit_status.store(status, std::memory_order_relaxed);
  header_->state.store(static_cast<u32>(state), std::memory_order_release);
}

void Session::remove_file(InHook) noexcept {
  if (path_[0] == '\0') return;
  call(SYS_unlink, path_);
  path_[0] = '\0';
}

void Session::keep_alive(InHook) noexcept {
  if (active_) renew_life(*header_);
}

View Session::view() noexcept { return View{arena.bytes()}; }

StringId Session::add_string(InHook hook, std::string_view text) noexcept {
  if (!active_ || text.empty()) return 0;
  constexpr Chunks kShape{1};
  text = text.substr(0, kMaxStringBytes);
  const auto length = static_cast<u32>(text.size());
  const u32 bytes = (sizeof(u32) + length + 3) & ~u32{3};

  const system::MutexGuard guard{strings_.lock_};
  if (!guard) return 0;
  u64 id = strings_.size();
  Chunks::Slot slot = kShape.locate(id);
  while (slot.byte + bytes > chunk_bytes(slot.chunk)) {
    id = kShape.first(slot.chunk + 1);
    slot = kShape.locate(id);
  }
  if (!strings_.reach(hook, kShape, id + bytes - 1)) return 0;
  std::byte* const to = strings_.chunks_[slot.chunk] + slot.byte;
  std::memcpy(to, &length, sizeof(length));
  std::memcpy(to + sizeof(length), text.data(), length);
  strings_.commit(static_cast<u32>(id) + bytes);
  return static_cast<StringId>(id);
}

bool Session::add_ring(InHook hook, Lane& lane, std::uint32_t slots) noexcept {
  const u64 bytes = u64{slots} * sizeof(Slot);
  const u64 offset = arena.take(hook, bytes);
  if (offset == 0 || !arena.populate(hook, offset, bytes)) return false;
  lane.ring_offset = offset;
  lane.ring_slots = slots;
  return true;
}

void Session::add_sums(InHook hook, Lane& lane, std::uint32_t sums) noexcept {
  const u64 sums_bytes = u64{sums} * sizeof(HolderSum);
  const u64 bytes = sums_bytes + u64{sums} * sizeof(u32);
  const u64 offset = arena.take(hook, bytes);
  if (offset == 0 || !arena.populate(hook, offset, bytes)) return;
  lane.sums_offset = offset;
  lane.temporaries_offset = offset + sums_bytes;
  lane.sums = sums;
}

std::uint32_t Session::acquire_lane(InHook hook, std::int32_t tid, std::uint32_t thread) noexcept {
  if (!active_) return 0;
  const auto take_over = [&](u32 number, i32 owner) {
    Lane& lane = lanes.at(number);
    if (!lane.owner_tid.compare_exchange_strong(owner, tid)) return false;
    lane.thread.store(thread, std::memory_order_relaxed);
    return true;
  };
  const u32 count = lanes.size();
  for (u32 number = 1; number < count && released_lanes_.load() != 0; ++number) {
    if (lanes.at(number).owner_tid.load(std::memory_order_relaxed) != 0 || !take_over(number, 0))
      continue;
    released_lanes_.fetch_sub(1, std::memory_order_relaxed);
    return number;
  }
  const bool few = count - 1 <= kProbedOwners;  // probe each of them
  for (u32 probe = 0; count > 1 && probe < std::min(kProbedOwners, count - 1); ++probe) {
    const u32 search = probed_lane_.fetch_add(1, std::memory_order_relaxed);
    const u32 number = 1 + (few ? search : scattered(search)) % (count - 1);
    const i32 owner = lanes.at(number).owner_tid.load(std::memory_order_relaxed);
    if (owner != 0 && has_ended(pid_, owner) && take_over(number, owner)) return number;
  }
  u32 number = 0;
  const bool added = lanes.append(hook, number, [&](Lane& lane) {
    lane.owner_tid.store(tid, std::memory_order_relaxed);
    lane.thread.store(thread, std::memory_order_relaxed);
  });
  if (!added) return 0;
  // Not under the table's lock: it takes system calls. Without a ring or sums, the lane still has
  // its counters.
  Lane& lane = lanes.at(number);
  const u32 main_slots = mode_ == Mode::exact ? kExactMainRingSlots : kMainRingSlots;
  if (tid != pid_ || !add_ring(hook, lane, main_slots)) add_ring(hook, lane, kThreadRingSlots);
  if (mode_ == Mode::exact) add_sums(hook, lane, tid == pid_ ? kMainSums : kThreadSums);
  return number;
}

void Session::release_lane(InHook, std::uint32_t lane) noexcept {
  if (!active_ || lane == 0) return;
  lanes.at(lane).owner_tid.store(0, std::memory_order_release);
  released_lanes_.fetch_add(1, std::memory_order_relaxed);
}

Slot* Session::ring(std::uint32_t lane) noexcept {
  const Lane& entry = lanes.at(lane);
  return entry.ring_slots == 0 ? nullptr : reinterpret_cast<Slot*>(arena.at(entry.ring_offset));
}

HolderSum* Session::sums(std::uint32_t lane) noexcept {
  const Lane& entry = lanes.at(lane);
  return entry.sums == 0 ? nullptr : reinterpret_cast<HolderSum*>(arena.at(entry.sums_offset));
}

Atomic<u32>* Session::temporaries(std::uint32_t lane) noexcept {
  const Lane& entry = lanes.at(lane);
  return entry.sums == 0 ? nullptr
                         : reinterpret_cast<Atomic<u32>*>(arena.at(entry.temporaries_offset));
}

}  // namespace oomrec::session
