// What the parts of recorder/device share.
#pragma once

#include "recorder/counters.h"
#include "recorder/device.h"
#include "recorder/session/writer.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

// A call that changes a GPU's memory: where it came from.
struct DeviceCaller {
  ThreadState* thread = nullptr;
  std::uint32_t node = 0;
};
// Also begins what a fork's child still waits for.
DeviceCaller device_caller(InHook) noexcept;

// Whether the session has the tables; opens them.
bool devices_ready(InHook) noexcept;

// Whether there is such an entry in `devices`.
inline bool is_known_device(std::uint32_t entry) noexcept {
  return entry != 0 && entry < session::g_session.devices.size();
}

// The device's figures, the thread's counters and a holder, by a block that comes, or goes.
void count_in(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
void count_out(InHook, ThreadState*, const live::DeviceBlock&) noexcept;
// Calls of a driver are rare: afterwards the totals of its spaces are told at once. Never under the
// lock of the blocks: it may tick, and a bundle take its time.
void publish_device(InHook, ThreadState*, Vendor) noexcept;

void append_device_event(ThreadState&, EventKind, Api, Space, std::uint32_t device,
                         std::uint64_t key, std::uint64_t bytes, std::uint32_t node) noexcept;

inline bool has_memory(const live::DeviceBlock& block) noexcept {
  return block.kind != DeviceKind::none;
}

void tally_call(Api, std::uint64_t bytes) noexcept;
void tell_release(ThreadState*, Api, const live::DeviceBlock&) noexcept;

// on_device_free() of an entry, without a call of its own.
DeviceReleased take_away(InHook, Api, const DeviceName&) noexcept;

// What a device's pools hold is `bytes` more.
void add_to_pools(std::uint32_t device, std::uint64_t bytes) noexcept;

// The figures of a device for a refusal there.
session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept;

// Whether PyTorch's allocator has made the call whose stack this is.
bool is_of_torch(std::uint32_t node) noexcept;

// Beside a point of the time line: entry `place` of device_points, 0 for a new one.
void write_device_point(InHook, std::uint64_t time_ns, std::uint32_t& entry) noexcept;

// Judges how near a device is to refusing, after its figures have changed; writes a bundle where it
// is due. Nanoseconds otherwise. Not under a lock.
void watch_device(InHook, std::uint32_t device) noexcept;
// Whether a look is due out of turn: by what this process has taken since the last it may be near.
bool expects_full(std::uint32_t device) noexcept;
void forget_near_devices(InHook) noexcept;

// After a fork.
void forget_devices(InHook) noexcept;

}  // namespace oomrec::recorder
