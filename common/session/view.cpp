#include "common/session/view.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/session/brief_holder.h"
#include "common/system/files.h"

namespace oomrec::session {

namespace {

// Constants of futex(2); linux/futex.h would bring much else.
constexpr u32 kFutexOwnerDied = 0x4000'0000;
constexpr u32 kFutexOwner = 0x3fff'ffff;

constexpr Chunks kHolderChunks{sizeof(HolderEntry)};
constexpr Chunks kNodeChunks{sizeof(NodeEntry)};
constexpr Chunks kFrameChunks{sizeof(Frame)};
constexpr Chunks kLaneChunks{sizeof(Lane)};
constexpr Chunks kStringChunks{1};
constexpr Chunks kResidencyChunks{sizeof(ResidencyPage)};

bool is_entry_size(TableId table, u32 bytes) noexcept {
  if (table == TableId::strings) return bytes == 1;
  return bytes >= 8 && bytes <= kMaxEntryBytes && bytes % 4 == 0;
}

template <class Word = u64>
Word load(const std::byte* at) noexcept {
  return reinterpret_cast<const Atomic<Word>*>(at)->load(std::memory_order_acquire);
}

// Loads before it stay before those after it, also on a processor that reorders them (aarch64).
void load_barrier() noexcept { std::atomic_thread_fence(std::memory_order_acquire); }

// Copies what may change meanwhile, each word as a whole.
void copy_words(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (; at + sizeof(u64) <= bytes; at += sizeof(u64)) {
    const u64 word =
        reinterpret_cast<const Atomic<u64>*>(from + at)->load(std::memory_order_relaxed);
    std::memcpy(to + at, &word, sizeof word);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

// Copies an entry that is reused: zero if it is free, or changes meanwhile. If its first word and
// its version are the same before and after, so is all that its writer stored in between.
void copy_reused(const std::byte* from, std::byte* to, std::size_t bytes, Reuse reuse) noexcept {
  const auto version_at = static_cast<u32>(reuse);
  const bool has_version =
      reuse != Reuse::without_version && version_at + sizeof(u32) <= bytes;  // of an older writer
  const u32 version = has_version ? load<u32>(from + version_at) : 0;
  const u64 first = load(from);
  copy_words(from, to, bytes);
  load_barrier();
  const bool same =
      load(from) == first && (!has_version || load<u32>(from + version_at) == version);
  if (!same || first == 0) std::memset(to, 0, bytes);
}

}  // namespace

Bytes Bytes::contiguous(const void* data, std::uint64_t bytes) noexcept {
  return {static_cast<const std::byte*>(data), nullptr, std::min(bytes, kMostBytes)};
}

const std::byte* Bytes::at(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (offset >= total || bytes > total - offset) return nullptr;
  if (whole != nullptr) return whole + offset;
  const u32 piece = piece_of(offset);
  if (pieces[piece] == nullptr || bytes > piece_start(piece + 1) - offset) return nullptr;
  return pieces[piece] + (offset - piece_start(piece));
}

View::View(const Bytes& bytes) noexcept : bytes_(bytes) {
  const std::byte* const start = bytes_.at(0, kHeaderBytes);
  if (start == nullptr) {
    u64 magic = kMagic;
    if (const std::byte* const begin = bytes_.at(0, sizeof magic))
      std::memcpy(&magic, begin, sizeof magic);
    if (magic != kMagic) problem_ = Problem::not_a_session;
    return;
  }
  header_ = reinterpret_cast<const Header*>(start);
  format_ = header_->version;
  const u32 state = header_->state.load(std::memory_order_acquire);
  if (header_->magic != kMagic) {
    problem_ = Problem::not_a_session;
  } else if (format_ > kVersion) {
    problem_ = Problem::newer_format;
  } else if (state == static_cast<u32>(State::starting)) {
    problem_ = Problem::unfinished;
  } else if (format_ == 0 || header_->header_bytes < kHeaderBytes ||
             state > static_cast<u32>(State::abandoned)) {
    problem_ = Problem::damaged;
  } else {
    problem_ = Problem::none;
  }
}

std::uint64_t View::count(TableId table) const noexcept {
  const auto slot = static_cast<u32>(table);
  if (problem_ != Problem::none || slot >= kTableSlots) return 0;
  const TableDirectory& directory = header_->tables[slot];
  const u32 entry_bytes = directory.entry_bytes;
  if (!is_entry_size(table, entry_bytes)) return 0;
  const u64 committed = directory.committed.load(std::memory_order_acquire);
  const u64 possible = bytes_.total / entry_bytes;
  return committed < possible ? committed : possible;
}

std::uint64_t View::offset_of_entry(const Chunks& expected, TableId table, std::uint64_t index,
                                    std::uint32_t& entry_bytes) const noexcept {
  if (index >= count(table)) return 0;
  const TableDirectory& directory = header_->tables[static_cast<u32>(table)];
  entry_bytes = directory.entry_bytes;
  if (!is_entry_size(table, entry_bytes)) return 0;  // changed since count()
  const Chunks::Slot slot = entry_bytes == expected.entry_bytes()
                                ? expected.locate(index)
                                : Chunks{entry_bytes}.locate(index);
  if (slot.chunk >= kMaxChunks) return 0;
  const u64 chunk = directory.chunk_offsets[slot.chunk].load(std::memory_order_relaxed);
  const bool possible = chunk >= kHeaderBytes && chunk < bytes_.total && chunk % 8 == 0;
  return possible ? chunk + slot.byte : 0;
}

bool View::read_bytes(const Chunks& expected, TableId table, std::uint64_t index, void* out,
                      std::size_t bytes, Reuse reuse) const noexcept {
  u32 entry_bytes = 0;
  const u64 offset = offset_of_entry(expected, table, index, entry_bytes);
  const std::byte* const from = offset == 0 ? nullptr : bytes_.at(offset, entry_bytes);
  if (from == nullptr) return false;
  const std::size_t known = entry_bytes < bytes ? entry_bytes : bytes;
  auto* const to = static_cast<std::byte*>(out);
  if (reuse != Reuse::never && reinterpret_cast<std::uintptr_t>(from) % 8 == 0) {
    copy_reused(from, to, known, reuse);
  } else {
    std::memcpy(to, from, known);
  }
  std::memset(to + known, 0, bytes - known);
  return true;
}

// An entry of at least 8 bytes, whose first word changes as a whole.
const std::byte* View::entry_at(const Chunks& chunks, TableId table,
                                std::uint64_t index) const noexcept {
  u32 entry_bytes = 0;
  const u64 offset = offset_of_entry(chunks, table, index, entry_bytes);
  if (offset == 0 || entry_bytes != chunks.entry_bytes()) return nullptr;
  return bytes_.at(offset, entry_bytes);
}

// A holder that is forgotten meanwhile, or is another stack's, reads as zero.
bool View::read_holder(std::uint64_t index, Holder& out) const noexcept {
  const std::byte* const from = entry_at(kHolderChunks, TableId::holders, index);
  if (from == nullptr) return false;
  const u64 name = load(from);
  const std::byte* const figures_at = from + offsetof(HolderEntry, figures);
  const u64 figures = load(figures_at);
  HolderEntry entry{};
  std::memcpy(static_cast<void*>(&entry), &name, sizeof name);
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  if (name == 0) return true;
  bool same = true;
  if (is_full(figures)) {
    read(TableId::full_holders, full_number(figures), out);
    same = out.node == 0 || (out.node == entry.node && out.space == entry.space);
    load_barrier();
    const u64 now = load(figures_at);
    same = same && is_full(now) && full_number(now) == full_number(figures);
  } else {
    BriefHolder::unpacked(figures).expand(out);
  }
  if (!same || load(from) != name) {
    std::memset(static_cast<void*>(&out), 0, sizeof out);
    return true;
  }
  out.node = entry.node;
  out.space = entry.space;
  out.api = entry.api;
  return true;
}

bool View::read_node(std::uint64_t index, Node& out) const noexcept {
  const std::byte* const node = entry_at(kNodeChunks, TableId::nodes, index);
  if (node == nullptr) return false;
  const auto entry = std::bit_cast<NodeEntry>(load(node));
  const std::byte* const frame = entry_at(kFrameChunks, TableId::frames, entry.frame);
  if (frame == nullptr) return false;
  out = {entry.parent, 0, load(frame)};
  return true;
}

// An entry that is free or changes meanwhile reads as zero. If two copies are equal, then the entry
// was whole when the first was made, or its version still says in the second that it changes.
bool View::read_module(std::uint64_t index, Module& out) const noexcept {
  static constexpr Chunks kChunks{sizeof(Module)};
  const std::byte* const from = entry_at(kChunks, TableId::modules, index);
  if (from == nullptr)
    return read_bytes(kChunks, TableId::modules, index, &out, sizeof out, Reuse::never);
  Module again;
  copy_words(from, reinterpret_cast<std::byte*>(&out), sizeof out);
  load_barrier();
  copy_words(from, reinterpret_cast<std::byte*>(&again), sizeof again);
  if (std::memcmp(&out, &again, sizeof out) != 0 || out.version == kModuleChanges) out = {};
  return true;
}

const Residency* View::residency() const noexcept {
  if (problem_ != Problem::none || format_ < 12) return nullptr;
  const u32 latest = header_->latest_look.load(std::memory_order_acquire);
  const std::byte* const entry =
      latest == 0 ? nullptr : entry_at(kResidencyChunks, TableId::residency, latest);
  return reinterpret_cast<const Residency*>(entry);
}

ResidencyRow View::residency_row(u32 i) const noexcept {
  const u64 at = sizeof(Residency) + u64{i} * sizeof(ResidencyRow);
  const std::byte* const page =
      entry_at(kResidencyChunks, TableId::residency,
               header_->latest_look.load(std::memory_order_relaxed) + at / sizeof(ResidencyPage));
  ResidencyRow row{};
  if (page != nullptr) std::memcpy(&row, page + at % sizeof(ResidencyPage), sizeof row);
  return row;
}

// Not by a copy of the lane, which is large.
bool View::read_in_flight(u64 index, InFlight& out, u32& thread) const noexcept {
  u32 entry_bytes = 0;
  const u64 offset = offset_of_entry(kLaneChunks, TableId::lanes, index, entry_bytes);
  const std::byte* const from = offset == 0 ? nullptr : bytes_.at(offset, entry_bytes);
  constexpr auto kEnd = offsetof(Lane, in_flight) + sizeof(InFlight);
  if (from == nullptr || entry_bytes < kEnd) return false;
  const auto* const lane = reinterpret_cast<const Lane*>(from);
  const u64 bytes = lane->in_flight.bytes.load(std::memory_order_acquire);
  if (bytes == 0 || lane->owner_tid.load(std::memory_order_relaxed) == 0) return false;
  out.bytes.store(bytes, std::memory_order_relaxed);
  out.replaced_bytes = lane->in_flight.replaced_bytes;
  out.node.store(lane->in_flight.node.load(std::memory_order_relaxed), std::memory_order_relaxed);
  out.replaced_holder = lane->in_flight.replaced_holder;
  out.api = lane->in_flight.api;
  out.space = lane->in_flight.space;
  thread = lane->thread.load(std::memory_order_relaxed);
  return true;
}

Thread View::thread_at(std::uint64_t index, std::uint64_t time_ns) const noexcept {
  constexpr u64 kEventNs = 1'000'000;  // events have milliseconds
  Thread thread{};
  read(TableId::threads, index, thread);
  return thread.first_seen_ns <= time_ns + kEventNs ? thread : Thread{};
}

std::string_view View::string(StringId id) const noexcept {
  u32 one = 0;
  const u64 offset = offset_of_entry(kStringChunks, TableId::strings, id, one);
  if (id == 0 || id % 4 != 0 || offset == 0) return {};
  const Chunks::Slot slot = kStringChunks.locate(id);
  u32 bytes = 0;
  u64 left = chunk_bytes(slot.chunk) - slot.byte;
  const std::byte* const length = bytes_.at(offset, sizeof(bytes));
  if (left < sizeof(bytes) || length == nullptr) return {};
  std::memcpy(&bytes, length, sizeof(bytes));
  left -= sizeof(bytes);
  bytes &= (1u << kStringLengthBits) - 1;
  if (bytes > kMaxStringBytes || bytes > left) return {};
  const std::byte* const text = bytes_.at(offset + sizeof(bytes), bytes);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), bytes};
}

bool View::slot_at(const Lane& lane, u64 number, Event& out) const noexcept {
  const u64 mask = lane.ring_slots - 1;
  const std::byte* const from =
      bytes_.at(lane.ring_offset + (number & mask) * sizeof(Slot), sizeof(Slot));
  if (from == nullptr) return false;
  const u64 first = load(from);
  const u64 second = load(from + sizeof(u64));
  load_barrier();
  if (first != load(from)) return false;
  const u64 lap = lap_of(number, static_cast<unsigned>(std::popcount(mask)));
  out = unpacked_event(first, second, lap);
  return first >> 58 == lap && second >> 58 == lap;
}

// Adds what is stored before the event because it did not fit into it.
bool View::complete_event(const Lane& lane, u64 number, Event& event) const noexcept {
  bool size_found = event.bytes != kSizeElsewhere;
  bool location_found = event.api != kApiElsewhere;
  while (!size_found || !location_found) {
    Event before;
    if (number == 0 || !slot_at(lane, --number, before)) return false;
    if (before.is_stamp()) continue;
    if (before.kind != EventKind::none) return false;
    if (before.api == kApiElsewhere) {
      unpack_location(before.address, event);
      location_found = true;
    } else {
      event.bytes = before.address;
      size_found = true;
    }
  }
  return true;
}

bool View::event(const Lane& lane, std::uint64_t number, Event& out) const noexcept {
  const u32 slots = lane.ring_slots;
  if (problem_ != Problem::none || slots == 0 || slots > kMaxRingSlots ||
      !std::has_single_bit(slots) || lane.ring_offset % 8 != 0 || lane.ring_offset < kHeaderBytes ||
      lane.ring_offset > bytes_.total || !slot_at(lane, number, out) ||
      out.kind == EventKind::none) {
    return false;
  }
  if (!complete_event(lane, number, out)) return false;
  const u64 oldest = number & ~u64{std::min(slots, kStampEvents) - 1};
  Event before = out;
  for (u64 at = number; !before.is_stamp();) {
    if (at == oldest) return false;
    slot_at(lane, --at, before);  // false: torn, its writer died while writing it
  }
  out.time_ms = static_cast<u32>(before.address);
  out.thread = static_cast<u32>(before.address >> 32);
  return true;
}

bool View::holder(std::uint64_t index, Holder& out) const noexcept {
  if (!read(TableId::holders, index, out) || out.space >= kLaneSpaces) return false;
  const auto add = [](Atomic<u64>& word, u64 by) noexcept {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  };
  if (out.peak_epoch != peak_epoch_of(*header_, out)) {
    out.peak_bytes.store(out.live_bytes, std::memory_order_relaxed);
    out.peak_count.store(out.live_count, std::memory_order_relaxed);
  }
  if (out.space != static_cast<u8>(Space::heap)) return true;
  const u64 lanes = count(TableId::lanes);
  for (u64 lane = 1; lane < lanes; ++lane) {
    const LaneSums sums = sums_of(lane);
    PendingSum pending;
    if (sums.count == 0 || !sum_at(sums, out.node & (sums.count - 1), pending) ||
        pending.sum.holder != index)
      continue;
    const HolderSum& sum = pending.sum;
    add(out.live_bytes, sum.live_bytes());
    add(out.live_count, sum.live_count());
    add(out.total_bytes, sum.allocated_bytes);
    add(out.total_count, sum.allocated_count());
    out.temporary_count.store(
        saturated_sum(out.temporary_count.load(std::memory_order_relaxed), pending.temporary_count),
        std::memory_order_relaxed);
    if (!pending.in_peak) continue;
    add(out.peak_bytes, sum.live_bytes());
    add(out.peak_count, sum.live_count());
  }
  return true;
}

View::LaneSums View::sums_of(u64 lane) const noexcept {
  u32 entry_bytes = 0;
  const u64 offset = offset_of_entry(kLaneChunks, TableId::lanes, lane, entry_bytes);
  const std::byte* const from = offset == 0 ? nullptr : bytes_.at(offset, entry_bytes);
  // Before version 5 a lane had no temporaries.
  // In a forged file it may also lie where no writer puts one.
  const bool aligned = reinterpret_cast<std::uintptr_t>(from) % alignof(Lane) == 0;
  if (from == nullptr || !aligned || entry_bytes < offsetof(Lane, temporaries_offset)) return {};
  const auto* const entry = reinterpret_cast<const Lane*>(from);
  const u32 sums = entry->sums;
  const u64 sums_offset = entry->sums_offset;
  if (sums > kMaxSums || !std::has_single_bit(sums) || sums_offset % 8 != 0 ||
      sums_offset < kHeaderBytes) {
    return {};
  }
  const u32 epoch = header_->spaces[static_cast<std::size_t>(Space::heap)].peak_epoch;
  const std::byte* const array = bytes_.at(sums_offset, u64{sums} * sizeof(HolderSum));
  if (array == nullptr) return {};
  const u64 temporaries = entry_bytes < offsetof(Lane, in_flight) ? 0 : entry->temporaries_offset;
  const bool counted = temporaries % sizeof(u32) == 0 && temporaries >= kHeaderBytes;
  return {array, counted ? bytes_.at(temporaries, u64{sums} * sizeof(u32)) : nullptr, sums,
          entry->sums_epoch.load(std::memory_order_relaxed) != epoch};
}

bool View::sum_at(const LaneSums& sums, u32 at, PendingSum& out) noexcept {
  std::memcpy(static_cast<void*>(&out.sum), sums.from + u64{at} * sizeof(HolderSum),
              sizeof(HolderSum));
  out.in_peak = sums.in_peak;
  out.temporary_count = 0;
  if (sums.temporaries != nullptr)
    std::memcpy(&out.temporary_count, sums.temporaries + u64{at} * sizeof(u32), sizeof(u32));
  return out.sum.holder != 0 && out.sum.counts != 0;
}

const std::byte* View::words_of(u64 index, SidePage& page) const noexcept {
  if (!read(TableId::side_pages, index, page) || page.shift < kSmallestSideShift ||
      page.shift > kLargestSideShift || page.start % kSideSpanBytes != 0) {
    return nullptr;
  }
  return bytes_.at(u64{page.page} * kUnitBytes, (kSideSpanBytes >> page.shift) * sizeof(u64));
}

std::uint64_t View::load_word(const std::byte* at) noexcept { return load(at); }

View::Totals View::totals(Space space) const noexcept {
  Totals sum;
  const u64 lanes = count(TableId::lanes);
  const u64 at = offsetof(Lane, spaces) + static_cast<u64>(space) * sizeof(SpaceCounters);
  for (u64 lane = 1; lane < lanes; ++lane) {
    u32 entry_bytes = 0;
    const u64 offset = offset_of_entry(kLaneChunks, TableId::lanes, lane, entry_bytes);
    if (offset == 0 || at + sizeof(SpaceCounters) > entry_bytes) continue;
    const std::byte* const from = bytes_.at(offset + at, sizeof(SpaceCounters));
    if (from == nullptr) continue;
    SpaceCounters counters;
    std::memcpy(static_cast<void*>(&counters), from, sizeof(counters));
    sum.allocated_bytes += counters.usable_allocated_bytes;  // as holders count them
    sum.allocated_count += counters.allocated_count;
    sum.freed_count += counters.freed_count;
    sum.failed_count += counters.failed_count;
    // Unsigned until the end: sums of a forged file may wrap.
    sum.live_bytes =
        static_cast<i64>(static_cast<u64>(sum.live_bytes) + counters.usable_allocated_bytes -
                         counters.usable_freed_bytes);
    sum.live_count = static_cast<i64>(static_cast<u64>(sum.live_count) + counters.allocated_count -
                                      counters.freed_count);
  }
  return sum;
}

namespace {

// The thread that holds the mutex is gone, although the kernel has not marked the mutex. That
// happens when the kernel kills the process for memory and the session's page is swapped out.
// Decided only where pids mean the same and no processes are hidden.
bool is_owner_gone(const HeaderStart& header, i32 owner) noexcept {
  const u32 counted_in = header.pid_namespace();
  if (counted_in == 0 || counted_in != system::pid_namespace() || system::start_ticks(1) == 0)
    return false;
  const u64 start = system::start_ticks(owner);
  return owner == header.pid() ? start != header.start_ticks() : start == 0;
}

}  // namespace

Life life_of(const HeaderStart& header) noexcept {
  if (system::is_of_other_boot(header.boot_id())) return Life::dead;
  const u32 word = header.alive_word();
  const u32 owner = word & kFutexOwner;
  if (owner != 0 && (word & kFutexOwnerDied) == 0)
    return is_owner_gone(header, static_cast<i32>(owner)) ? Life::dead : Life::alive;
  // The thread that held it may have ended before its process; the next tick takes over the mutex.
  const State state = header.state();
  const bool has_left = state == State::exited || state == State::replaced;
  const u64 start = header.start_ticks();
  return !has_left && start != 0 && system::start_ticks(header.pid()) == start ? Life::alive
                                                                               : Life::dead;
}

Life life_of(const View& view) noexcept {
  return view.problem() == Problem::none ? life_of(HeaderStart{view.header()}) : Life::dead;
}

}  // namespace oomrec::session
