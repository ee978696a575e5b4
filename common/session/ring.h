// A lane's ring of its latest events: the format of a slot (layout.h, Slot), and its writer.
//
// A slot is two words: address 0–47, kind 48–51, api 52–57, lap 58–63; and bytes 0–31, node 32–57,
// lap 58–63. The lap counts the ring's rounds, from 1. A slot whose words do not both have the
// expected lap is torn, empty, or overwritten by a later event.
//
// The *stamp* before an event has its time and thread: a `mark` of api `none` whose address is
// {thread entry, ms since start}. Every kStampEvents-th number is a stamp, and each change of the
// time adds one.
//
// What does not fit into an event is in one or two events of kind `none` before it, as the address.
// A size of more than 32 bits has api `none`. The location of a GPU's event has api kApiElsewhere,
// as has the event itself: {device, space, api}. A stamp may come between.
#pragma once

#include <bit>

#include "common/session/layout.h"

namespace oomrec::session {

inline constexpr u32 kStampEvents = 64;  // or the number of slots, if fewer
inline constexpr u32 kSizeElsewhere = ~u32{0};
inline constexpr u32 kRingNodes = 1u << 26;  // later nodes are not stored
inline constexpr u64 kRingAddresses = u64{1} << 48;
inline constexpr Api kApiElsewhere{63};
static_assert(kHostApiCount < 62);

// A decoded event.
struct Event {
  u32 time_ms = 0;  // since start
  u32 thread = 0;   // low 16 bits of the entry in `threads`
  u64 address = 0;  // fail: entry in `failures`; remap: the new address
  u64 bytes = 0;    // as requested (free: what its holder counted, 0: unknown)
  u32 stack = 0;    // node; 0: unknown (a free). remap: see `mark` events
  EventKind kind = EventKind::none;
  Api api = Api::none;
  Space space = Space::heap;
  u32 device = 0;  // entry in `devices`; 0: none or unknown

  bool is_stamp() const noexcept { return kind == EventKind::mark && api == Api::none; }
};

// The location of a GPU's event, stored in the event before it.
constexpr u64 packed_location(Api api, Space space, u32 device) noexcept {
  return u64{device & 0xffff} << 24 | u64{static_cast<u8>(space)} << 16 | static_cast<u16>(api);
}
constexpr void unpack_location(u64 word, Event& event) noexcept {
  event.api = static_cast<Api>(word & 0xffff);
  event.space = static_cast<Space>(word >> 16 & 0xff);
  event.device = static_cast<u32>(word >> 24 & 0xffff);
}

// `slots`: its binary logarithm.
constexpr u64 lap_of(u64 number, unsigned slots) noexcept { return ((number >> slots) + 1) & 63; }

// The event in a slot of lap `lap`; kind `none` if it is torn or of another lap.
inline Event unpacked_event(u64 first, u64 second, u64 lap) noexcept {
  if (first >> 58 != lap || second >> 58 != lap) return {};
  return {.address = first & (kRingAddresses - 1),
          .bytes = second & 0xffff'ffff,
          .stack = static_cast<u32>(second >> 32) & (kRingNodes - 1),
          .kind = static_cast<EventKind>(first >> 48 & 15),
          .api = static_cast<Api>(first >> 52 & 63),
          .space = space_of(static_cast<Api>(first >> 52 & 63))};
}

// Writes one lane's ring; used by its owner only.
class RingWriter {
 public:
  void use(Lane& lane, Slot* slots) noexcept {
    lane_ = &lane;
    slots_ = slots;
    next_ = lane.ring_next.load(std::memory_order_relaxed);
    mask_ = slots == nullptr ? 0 : lane.ring_slots - 1;
    log_slots_ = static_cast<unsigned>(std::popcount(mask_));
    stamp_mask_ = mask_ < kStampEvents ? mask_ : kStampEvents - 1;
  }

  void append(u32 time_ms, u32 thread, EventKind kind, Api api, u64 address, u64 bytes,
              u32 node) noexcept {
    if (slots_ == nullptr) return;
    const u64 stamp = u64{thread & 0xffff} << 32 | time_ms;
    if (bytes >= kSizeElsewhere) [[unlikely]] {
      put_stamp_if_due(stamp);
      put(EventKind::none, Api::none, bytes < kRingAddresses ? bytes : kRingAddresses - 1, 0, 0);
      bytes = kSizeElsewhere;
    }
    put_stamp_if_due(stamp);
    put(kind, api, address, bytes, node < kRingNodes ? node : 0);
  }

  // The number of the next event. Reads nothing of the session.
  u64 next() const noexcept { return next_; }

  // For append_plain(): a new time may wait for its stamp, and a new lap begins, only where the
  // next event's number is a multiple of this. Call begin_plain() there.
  static constexpr u64 kPlainEvents = 16;
  bool takes_plain() const noexcept { return slots_ != nullptr && mask_ >= kPlainEvents - 1; }
  bool needs_begin() const noexcept { return next() % kPlainEvents == 0; }
  void begin_plain(u32 time_ms, u32 thread) noexcept {
    put_stamp_if_due(u64{thread & 0xffff} << 32 | time_ms);
    lap_ = lap_of(next(), log_slots_) << 58;
  }

  // The same as append() to the ring of `lane`, which is this one's. `address` and `node` are ones
  // that fit, `bytes` is of a small block.
  [[gnu::always_inline]] void append_plain(Lane& lane, EventKind kind, Api api, u64 address,
                                           u64 bytes, u32 node) noexcept {
    fill(slots_[next_ & mask_], lap_, kind, api, address, bytes, node);
    lane.ring_next.store(++next_, std::memory_order_release);
  }

  // An event of a GPU.
  void append_device_event(u32 time_ms, u32 thread, EventKind kind, u64 location, u64 address,
                           u64 bytes, u32 node) noexcept {
    if (slots_ == nullptr) return;
    put_stamp_if_due(u64{thread & 0xffff} << 32 | time_ms);
    put(EventKind::none, kApiElsewhere, location, 0, 0);
    append(time_ms, thread, kind, kApiElsewhere, address, bytes, node);
  }

 private:
  void put_stamp_if_due(u64 stamp) noexcept {
    if (stamp != stamp_) [[unlikely]] {
      stamp_ = stamp;
      put_stamp();
    }
    if ((next() & stamp_mask_) == 0) [[unlikely]]
      put_stamp();
  }

  void put_stamp() noexcept {
    put(EventKind::mark, Api::none, stamp_, 0, 0);
    lane_->stamps.store(lane_->stamps.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }

  void put(EventKind kind, Api api, u64 address, u64 bytes, u32 node) noexcept {
    lap_ = lap_of(next_, log_slots_) << 58;
    fill(slots_[next_ & mask_], lap_, kind, api, address & (kRingAddresses - 1), bytes, node);
    lane_->ring_next.store(++next_, std::memory_order_release);
  }

  [[gnu::always_inline]] static void fill(Slot& slot, u64 lap, EventKind kind, Api api, u64 address,
                                          u64 bytes, u32 node) noexcept {
    slot.second.store(lap | u64{node} << 32 | bytes, std::memory_order_relaxed);
    slot.first.store(
        (lap | u64{static_cast<u8>(api)} << 52 | u64{static_cast<u8>(kind)} << 48) + address,
        std::memory_order_release);
  }

  Lane* lane_ = nullptr;
  Slot* slots_ = nullptr;
  u64 next_ = 0;  // the lane's ring_next
  u64 mask_ = 0;
  unsigned log_slots_ = 0;
  u64 stamp_mask_ = 0;
  u64 stamp_ = ~u64{0};
  u64 lap_ = 0;  // of the latest slot, in place
};

}  // namespace oomrec::session
