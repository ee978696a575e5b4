#include "recorder/session/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
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
constexpr u32 kMainRingSlots = 4096;  // in a recording of the default size
constexpr u32 kExactMainRingSlots = 16384;
constexpr u32 kThreadSums = 128;  // of exact mode: a page, and one more for their temporaries
constexpr u32 kMainSums = 1024;
constexpr u32 kProbedOwners = 8;
constexpr u32 kMostLanesAtOnce = 8;

// A ring keeps the stacks of its events: a smaller recording has fewer.
u32 main_ring_slots(Mode mode, u64 budget_bytes) noexcept {
  const bool exact = mode == Mode::exact;
  const u64 share = std::bit_ceil(budget_bytes / (exact ? 8192 : 4096));
  return static_cast<u32>(
      std::clamp<u64>(share, kThreadRingSlots, exact ? kExactMainRingSlots : kMainRingSlots));
}

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
         open(frames, TableId::frames) && open(nodes, TableId::nodes) &&
         open(holders, TableId::holders) && open(full_holders, TableId::full_holders) &&
         open(live_blocks, TableId::live_blocks) && open(live_ranges, TableId::live_ranges) &&
         open(threads, TableId::threads) && open(lanes, TableId::lanes) &&
         open(failures, TableId::failures) && open(modules, TableId::modules) &&
         open(codes, TableId::codes) && open(points, TableId::points) &&
         open(checkpoints, TableId::checkpoints) &&
         open(checkpoint_rows, TableId::checkpoint_rows) && open(marks, TableId::marks) &&
         open(sent_signals, TableId::sent_signals) &&
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

bool Session::open_residency(InHook hook) noexcept {
  return active_ &&
         residency.open(hook, arena, header_->tables[static_cast<u32>(TableId::residency)],
                        residency.kShape, 1);
}

void Session::detach(InHook hook) noexcept {
  if (header_ == nullptr) return;
  arena.close(hook, robust_list_in_use() ? FirstPage::zeros : FirstPage::unmapped);
  std::construct_at(this);
}

void Session::close(InHook hook) noexcept {
  release_kept();
  if (header_ == nullptr) return;
  // A fork's child that is not recorded still has its parent's, which must stay as it is.
  if (pid_ != system::process_id()) return detach(hook);
  Header& header = *header_;
  const bool is_ours_alone = end_life(header);
  arena.close(hook, is_ours_alone ? FirstPage::unmapped : FirstPage::kept);
  if (!is_ours_alone) keep_for_owner(header);
  std::construct_at(this);
}

void Session::mark(InHook, State state, std::int32_t status) noexcept {
  if (!active_) return;
  header_->exit_status.store(status, std::memory_order_relaxed);
  header_->state.store(static_cast<u32>(state), std::memory_order_release);
}

void Session::remove_file(InHook) noexcept {
  if (path_[0] == '\0') return;
  call(SYS_unlinkat, AT_FDCWD, path_, 0);
  path_[0] = '\0';
}

void Session::keep_alive(InHook) noexcept {
  if (active_) renew_life(*header_);
}

View Session::view() noexcept { return View{arena.bytes()}; }

StringId Session::add_string(InHook hook, std::string_view text) noexcept {
  text = text.substr(0, kMaxStringBytes);
  return add_text(hook, text, static_cast<u32>(text.size()), static_cast<u32>(text.size()));
}

StringId Session::add_text(InHook hook, std::string_view text, u32 capacity, u32 word) noexcept {
  if (!active_ || text.empty()) return 0;
  constexpr Chunks kShape{1};
  const u32 bytes = (sizeof(u32) + capacity + 3) & ~u32{3};

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
  std::memcpy(to, &word, sizeof(word));
  std::memcpy(to + sizeof(word), text.data(), text.size());
  strings_.commit(static_cast<u32>(id) + bytes);
  return static_cast<StringId>(id);
}

namespace {

// Sizes of the memory of texts: four for each power of two, so that a fifth of it is wasted at
// most.
constexpr u32 kLeastText = 16;
constexpr u32 text_class(u32 bytes) noexcept {
  if (bytes <= kLeastText) return 0;
  const u32 power = static_cast<u32>(std::bit_width(bytes - 1)) - 1;  // 2^power < bytes
  return (power - 4) * 4 + ((bytes - 1) >> (power - 2) & 3) + 1;
}
constexpr u32 bytes_of_class(u32 text_class) noexcept {
  return text_class == 0 ? kLeastText
                         : (4 + (text_class - 1) % 4 + 1) << ((text_class - 1) / 4 + 2);
}
static_assert(text_class(16) == 0 && text_class(17) == 1 && bytes_of_class(1) == 20);
static_assert(bytes_of_class(text_class(33)) == 40 && bytes_of_class(text_class(64)) == 64);
static_assert(bytes_of_class(text_class(65)) == 80 && bytes_of_class(text_class(1000)) == 1024);
static_assert(text_class(kMaxStringBytes) < 64);

// The class of a text's memory is above its length, so that memory of a larger class than the text
// needs is not lost.
constexpr u32 word_of_text(u32 bytes, u32 of_class) noexcept {
  return bytes | of_class << kStringLengthBits;
}

}  // namespace

StringId Session::take_text(InHook hook, std::string_view text) noexcept {
  if (!active_ || text.empty()) return 0;
  text = text.substr(0, kMaxStringBytes);
  const auto bytes = static_cast<u32>(text.size());
  const u32 fitting = text_class(bytes);
  const u32 twice = std::min(fitting + 4, kTextClasses - 1);  // as large
  if (const StringId id = take_free_text(text, fitting, twice)) return id;
  const u32 word = word_of_text(bytes, fitting);
  if (const StringId id = add_text(hook, text, bytes_of_class(fitting), word)) return id;
  return take_free_text(text, twice, kTextClasses - 1);
}

StringId Session::take_free_text(std::string_view text, u32 first_class, u32 last_class) noexcept {
  const system::MutexGuard guard{strings_.lock_};
  if (!guard) return 0;
  while (first_class < last_class && free_texts_[first_class] == 0) ++first_class;
  const StringId id = free_texts_[first_class];
  if (id == 0) return 0;
  std::byte* const at = text_at(id);
  std::memcpy(&free_texts_[first_class], at + sizeof(u32), sizeof(StringId));
  std::memcpy(at + sizeof(u32), text.data(), text.size());
  std::atomic_ref(*reinterpret_cast<u32*>(at))
      .store(word_of_text(static_cast<u32>(text.size()), first_class), std::memory_order_release);
  return id;
}

void Session::give_text(InHook, StringId id) noexcept {
  if (id == 0) return;
  const system::MutexGuard guard{strings_.lock_};
  if (!guard) return;
  std::byte* const at = text_at(id);
  const std::atomic_ref word(*reinterpret_cast<u32*>(at));
  const u32 of_class = word.load(std::memory_order_relaxed) >> kStringLengthBits;
  word.store(0, std::memory_order_relaxed);
  std::memcpy(at + sizeof(u32), &free_texts_[of_class], sizeof(StringId));
  free_texts_[of_class] = id;
}

std::byte* Session::text_at(StringId id) noexcept {
  const Chunks::Slot slot = Chunks{1}.locate(id);
  return strings_.chunks_[slot.chunk] + slot.byte;
}

// A ring and sums for each lane from `first` on. Without them a lane still has its counters.
bool Session::add_memory(InHook hook, u32 first, u32 count, u32 slots, u32 sums) noexcept {
  const u64 ring_bytes = u64{slots} * sizeof(Slot);
  const u64 sums_bytes = u64{sums} * sizeof(HolderSum);
  const u64 lane_bytes = ring_bytes + sums_bytes + u64{sums} * sizeof(u32);
  u64 offset = arena.take(hook, count * lane_bytes);
  if (offset == 0 || !arena.populate(hook, offset, count * lane_bytes)) return false;
  for (u32 number = first; number != first + count; ++number, offset += lane_bytes) {
    Lane& lane = lanes.at(number);
    lane.ring_offset = offset;
    lane.ring_slots = slots;
    if (sums == 0) continue;
    lane.sums_offset = offset + ring_bytes;
    lane.temporaries_offset = lane.sums_offset + sums_bytes;
    lane.sums = sums;
  }
  return true;
}

// Adds lanes: one that `tid` owns, and as many as there are already, up to a few, for the threads
// that are likely to come, since each step takes locks and system calls. 0: none could be added.
u32 Session::add_lanes(InHook hook, i32 tid) noexcept {
  const u32 wanted = std::clamp(lanes.size() - 1, u32{1}, kMostLanesAtOnce);
  if (lanes.size() >= kMostLanes) return 0;
  const u32 first = lanes.reserve(hook, wanted);
  if (first == 0 || first >= kMostLanes) return 0;  // other threads were faster
  const u32 count = std::min(wanted, kMostLanes - first);
  // All get an owner until their memory is there. Another thread may have taken one for a free
  // lane.
  u32 own = 0;
  for (u32 number = first; number != first + count; ++number)
    if (take_lane(number, 0, tid) && own == 0) own = number;
  const bool exact = mode_ == Mode::exact;
  const bool is_main = tid == pid_;
  if (!is_main || !add_memory(hook, first, count, main_ring_slots(mode_, arena.budget_bytes()),
                              exact ? kMainSums : 0))
    add_memory(hook, first, count, kThreadRingSlots, exact ? kThreadSums : 0);
  for (u32 number = first; number != first + count; ++number)
    if (number != own && lanes.at(number).owner_tid.load(std::memory_order_relaxed) == tid)
      release_lane(hook, number);
  return own;
}

// Of the oldest, a few. Another thread may be taking the same one.
u32 Session::take_entry_of_ended_thread() noexcept {
  const u32 count = threads.size() - 1;
  for (u32 probe = 0; probe < std::min(kProbedOwners, count); ++probe) {
    const u32 number = 1 + next_thread_.fetch_add(1, std::memory_order_relaxed) % count;
    Thread& entry = threads.at(number);
    const std::atomic_ref first(*reinterpret_cast<u64*>(&entry));
    u64 name = first.load(std::memory_order_relaxed);
    const auto tid = static_cast<i32>(name);
    const u64 kept = kept_threads_[number / 64].load(std::memory_order_relaxed) >> number % 64;
    if (tid != 0 && (kept & 1) == 0 && has_ended(pid_, tid) &&
        first.compare_exchange_strong(name, 0, std::memory_order_relaxed))
      return number;
  }
  return 0;
}

u32 Session::take_thread_entry(InHook hook, const Thread& thread) noexcept {
  constexpr u64 kShare = 2048;  // of the budget for an entry: 1.6 %
  constexpr u64 kFewest = 1024;
  const auto most =
      static_cast<u32>(std::clamp<u64>(arena.budget_bytes() / kShare, kFewest, kMostThreadEntries));
  u32 number = threads.size() <= most ? threads.reserve(hook, 1) : 0;
  if (number == 0 && threads.size() > 1) number = take_entry_of_ended_thread();
  if (number == 0 && threads.size() <= kMostThreadEntries) number = threads.reserve(hook, 1);
  if (number == 0 || number > kMostThreadEntries) return 0;
  Thread& entry = threads.at(number);
  // Its first word is 0 until it is complete.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(entry.name, thread.name, sizeof entry.name);
  entry.first_seen_ns = thread.first_seen_ns;
  u64 name;
  static_assert(offsetof(Thread, group) == 4 && offsetof(Thread, name) == sizeof name);
  std::memcpy(&name, &thread, sizeof name);
  std::atomic_ref(*reinterpret_cast<u64*>(&entry)).store(name, std::memory_order_release);
  return number;
}

void Session::keep_thread_entry(u32 entry) noexcept {
  if (entry <= kMostThreadEntries)
    kept_threads_[entry / 64].fetch_or(u64{1} << entry % 64, std::memory_order_relaxed);
}

bool Session::take_lane(u32 number, i32 owner, i32 tid) noexcept {
  return lanes.at(number).owner_tid.compare_exchange_strong(owner, tid);
}

u32 Session::take_free_lane(i32 tid) noexcept {
  const u32 count = std::min(lanes.size(), kMostLanes) - 1;
  const u32 start = free_lane_.load(std::memory_order_relaxed);
  for (u32 i = 0; i < count && free_lanes_.load(std::memory_order_relaxed) != 0; ++i) {
    const u32 number = 1 + (start + i) % count;
    if (lanes.at(number).owner_tid.load(std::memory_order_relaxed) != 0 ||
        !take_lane(number, 0, tid))
      continue;
    free_lanes_.fetch_sub(1, std::memory_order_relaxed);
    free_lane_.store(number, std::memory_order_relaxed);  // the next one, counted from 0
    return number;
  }
  return 0;
}

u32 Session::take_lane_of_ended_thread(i32 tid) noexcept {
  const u32 count = std::min(lanes.size(), kMostLanes) - 1;
  const bool few = count <= kProbedOwners;  // probe each of them
  for (u32 probe = 0; probe < std::min(kProbedOwners, count); ++probe) {
    const u32 search = probed_lane_.fetch_add(1, std::memory_order_relaxed);
    const u32 number = 1 + (few ? search : scattered(search)) % count;
    const i32 owner = lanes.at(number).owner_tid.load(std::memory_order_relaxed);
    if (owner != 0 && has_ended(pid_, owner) && take_lane(number, owner, tid)) return number;
  }
  return 0;
}

u32 Session::acquire_lane(InHook hook, i32 tid, u32 thread) noexcept {
  if (!active_) return 0;
  u32 number = take_free_lane(tid);
  if (number == 0) number = take_lane_of_ended_thread(tid);
  if (number == 0) number = add_lanes(hook, tid);
  if (number != 0) lanes.at(number).thread.store(thread, std::memory_order_relaxed);
  return number;
}

void Session::release_lane(InHook, std::uint32_t lane) noexcept {
  if (!active_ || lane == 0) return;
  lanes.at(lane).owner_tid.store(0, std::memory_order_release);
  free_lane_.store(lane - 1, std::memory_order_relaxed);
  free_lanes_.fetch_add(1, std::memory_order_relaxed);
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
