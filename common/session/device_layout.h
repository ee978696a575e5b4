// GPUs in the session: part of layout.h. The tables are created when a program first calls a
// driver; a program without a GPU has none of them.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

// The vendor of a GPU's driver.
enum class Vendor : u8 { cuda, hip };
inline constexpr u32 kVendors = 2;

// How the program calls a driver.
struct Driver {
  Atomic<u32> linked;       // functions called through links, without a lookup
  Atomic<u32> by_dlsym;     // wrapped functions that were looked up by dlsym
  Atomic<u32> by_resolver;  // looked up by cuGetProcAddress or hipGetProcAddress
  Atomic<u32> wrapped;      // functions of the driver that have a wrapper
  u32 version;              // from cuDriverGetVersion; 0: unknown
  u32 path;                 // StringId, of the library
};
static_assert(sizeof(Driver) == 24);

// A GPU, numbered as by its driver in this process. Entry in `devices`.
struct Device {
  u8 vendor;
  u8 reserved[3];
  i32 ordinal;  // the driver's number; CUDA_VISIBLE_DEVICES changes it
  u8 uuid[16];
  char name[64];                    // NUL-terminated
  u64 limit_bytes;                  // --limit-gpu; 0: none
  Atomic<i64> block_bytes;          // physical memory of blocks, arrays and handles, without pools
  Atomic<i64> pool_used_bytes;      // live blocks of pools
  Atomic<u64> pool_reserved_bytes;  // of pools, as last reported by the driver
  Atomic<i64> managed_bytes;
  Atomic<u64> peak_bytes;             // of counted_bytes()
  Atomic<u64> torch_allocated_bytes;  // as last reported by PyTorch
  Atomic<u64> torch_reserved_bytes;
  Atomic<u64> torch_time_ns;  // 0: never reported
  Atomic<u64> polled_ns;      // when the driver reported the next two; 0: never
  Atomic<u64> free_bytes;
  Atomic<u64> total_bytes;
  Atomic<u64> polled_counted_bytes;  // counted_bytes() then

  // The memory that --limit-gpu counts: physical memory, each byte once.
  u64 counted_bytes() const noexcept {
    const u64 used = at_least_zero(pool_used_bytes), held = pool_reserved_bytes;
    return at_least_zero(block_bytes) + (used > held ? used : held);
  }

  // Memory used by all processes: the driver's last report, and this process' changes since then.
  u64 used_bytes() const noexcept {
    const u64 total = total_bytes, free = free_bytes, then = polled_counted_bytes;
    const u64 reported = total > free ? total - free : 0, now = counted_bytes();
    const u64 gone = then > now ? then - now : 0;
    const u64 used =
        now >= then ? reported + (now - then) : reported - (gone < reported ? gone : reported);
    return used < total ? used : total;
  }

  static u64 at_least_zero(i64 bytes) noexcept { return bytes < 0 ? 0 : static_cast<u64>(bytes); }
};
static_assert(offsetof(Device, limit_bytes) == 88 && offsetof(Device, polled_ns) == 160 &&
              sizeof(Device) == 192);

// The kind of key that identifies an object of a GPU.
enum class DeviceKey : u8 {
  none,
  address,      // of a block, whatever its memory
  host,         // of host memory that the GPU may reach
  array,        // handle of an array
  handle,       // of physical memory (cuMemCreate)
  reservation,  // address
  mapping,      // address; `owner`: the handle that is mapped
  external,     // handle of external memory
  pool,         // handle
  graph_block,  // address; `owner`: the graph, whose launch makes it live
  graph_free,   // address; `owner`: the graph, whose launch frees it
  executable,   // handle of an executable graph; `owner`: the graph it was made of
};

// The kind of memory.
enum class DeviceKind : u8 {
  none,      // no memory of its own
  block,     // physical memory of the device: blocks, arrays, handles
  pooled,    // a block of a pool; `owner`: the pool
  managed,   // memory that moves between host and device
  host,      // host memory: pinned by the driver, or registered
  imported,  // memory from elsewhere: by IPC, from a handle, or external
  reserved,  // address space
};

// Live unless `flags` says otherwise. Slots are reused like LiveBlock's.
struct DeviceBlock {
  Atomic<u64> key;  // together with `what`; 0: free slot (no driver uses a key of 0)
  u64 bytes;
  u64 context;  // freed with this context; 0: with the process
  u64 owner;    // see DeviceKey and DeviceKind
  u32 holder;   // 0: none
  u32 device;   // entry in `devices`; 0: unknown
  u32 birth_s;
  u32 references;  // of a handle: by the program and by mappings
  u8 vendor;
  u8 what;  // DeviceKey
  u8 kind;  // DeviceKind
  u8 flags;
  u32 version;
};
inline constexpr u8 kDeviceDormant = 1;      // of a graph not yet launched: not live
inline constexpr u8 kDeviceFreedInside = 2;  // freed by its graph: never live after a launch
static_assert(offsetof(DeviceBlock, holder) == 32 && offsetof(DeviceBlock, vendor) == 48 &&
              sizeof(DeviceBlock) == 56);

// A device's figures when a request failed. 0: unknown, unless noted otherwise.
struct DeviceEvidence {
  u32 device;  // entry in `devices`; 0: not a device's request, or unknown
  u32 polled_age_ms;
  u64 free_bytes, total_bytes;  // as reported by the driver
  u64 counted_bytes, limit_bytes;
  u64 managed_bytes;
  u64 pool_used_bytes, pool_reserved_bytes;
  u64 torch_allocated_bytes, torch_reserved_bytes;
  u64 torch_largest_free_bytes;  // largest free piece in PyTorch's segments; ~0: unknown
};
static_assert(sizeof(DeviceEvidence) == 88);

// A device's latest figures at each point of the time line, if there are devices.
inline constexpr u32 kPointDevices = 8;
struct DevicePoint {
  u64 time_ns;  // of the point; 0: being written
  struct Figures {
    u64 counted_bytes;
    u64 used_bytes, total_bytes;  // as reported by the driver `age_ms` before
    u64 torch_allocated_bytes, torch_reserved_bytes;
    u32 age_ms;
    u32 known;               // 1
  } devices[kPointDevices];  // entry in `devices`, less one
};
static_assert(sizeof(DevicePoint) == 8 + 48 * kPointDevices);

}  // namespace oomrec::session
