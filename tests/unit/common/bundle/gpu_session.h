// The session of a program whose request of 2 GiB failed on the second of its two GPUs; for tests
// of devices.
#pragma once

#include "tests/unit/common/bundle/session_image.h"

namespace oomrec::session {

struct GpuSession : SessionImage {
  static constexpr u64 kMiB = u64{1} << 20, kGiB = u64{1} << 30;

  GpuSession() {
    Thread& t = add<Thread>(TableId::threads, &thread);
    t.tid = 4711;
    std::strcpy(t.name, "python3");
    asked = stack({native_frame(module("/opt/torch/lib/libtorch.so"), 0x100)});
    open<Device>(TableId::devices);
    open<DeviceBlock>(TableId::device_blocks);
    open<DevicePoint>(TableId::device_points);
    open<Tally>(TableId::api_tallies);
    first = device(0, "NVIDIA H100");
    second = device(1, "NVIDIA H100");
    header().drivers[0].version = 13050;
    header().drivers[0].path = string("/usr/lib/libcuda.so.1");
    Failure& f = add<Failure>(TableId::failures, &entry);
    f.time_ns = header().start_monotonic_ns + 2'000'000'000U;
    f.bytes = 2 * kGiB;
    f.node = asked;
    f.thread = thread;
    f.api = static_cast<u16>(Api::cuMemAlloc);
    f.space = static_cast<u8>(Space::cuda);
    f.error = 2;
    f.device.device = second;
    f.device.polled_age_ms = 12;
    f.device.total_bytes = 80 * kGiB;
    f.device.free_bytes = 410 * kMiB;
    f.device.counted_bytes = 70 * kGiB;
    f.device.torch_largest_free_bytes = kUnlimited;
  }

  u32 device(i32 ordinal, const char* name, Vendor vendor = Vendor::cuda) {
    u32 index = 0;
    Device& d = add<Device>(TableId::devices, &index);
    d.vendor = static_cast<u8>(vendor);
    d.ordinal = ordinal;
    for (u8 i = 0; i < 16; ++i) d.uuid[i] = static_cast<u8>(i * 16 + static_cast<u8>(ordinal));
    std::strcpy(d.name, name);
    d.total_bytes = 80 * kGiB;
    d.free_bytes = 8 * kGiB;
    d.polled_ns = header().start_monotonic_ns + 1;
    return index;
  }

  DeviceBlock& block(u32 on, u32 holder, u64 size) {
    DeviceBlock& b = add<DeviceBlock>(TableId::device_blocks);
    b.key = 0x7f00'0000'0000U + size;
    b.bytes = size;
    b.holder = holder;
    b.device = on;
    return b;
  }

  Device& device_at(u32 index) {
    const TableDirectory& d = header().tables[static_cast<u32>(TableId::devices)];
    return *reinterpret_cast<Device*>(bytes().data() + d.chunk_offsets[0] + index * sizeof(Device));
  }
  Failure& refused() {
    const TableDirectory& d = header().tables[static_cast<u32>(TableId::failures)];
    return *reinterpret_cast<Failure*>(bytes().data() + d.chunk_offsets[0] +
                                       entry * sizeof(Failure));
  }

  u32 thread = 0, asked = 0, first = 0, second = 0, entry = 0;
};

}  // namespace oomrec::session
