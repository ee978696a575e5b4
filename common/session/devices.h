// What the session keeps of GPUs: part of layout.h. The tables are opened when a program first
// reaches a driver; a program without a GPU has none of them.
#pragma once

#include <cstddef>

#include "common/session/types.h"

namespace oomrec::session {

// Whose functions reach a GPU.
enum class Vendor : u8 { cuda, hip };
inline constexpr u32 kVendors = 2;

// A driver as the program uses it.
struct Driver {
  Atomic<u32> linked;       // calls arrive by links: functions called that nobody had looked up
  Atomic<u32> by_dlsym;     // of our functions that were looked up so
  Atomic<u32> by_resolver;  // by cuGetProcAddress, hipGetProcAddress
  Atomic<u32> wrapped;      // functions of the driver that we stand before
  u32 version;              // as cuDriverGetVersion tells it; 0: not known
  u32 path;                 // StringId, of the library
};
static_assert(sizeof(Driver) == 24);

// A GPU, as its driver numbers it in this process. Entry in `devices`.
struct Device {
  u8 vendor;
  u8 reserved[3];
  i32 ordinal;  // by the driver: CUDA_VISIBLE_DEVICES renumbers
  u8 uuid[16];
  char name[64];            // NUL-terminated
  u64 limit_bytes;          // --limit-gpu; 0: none
  Atomic<i64> block_bytes;  // blocks, arrays, handles: physical memory, each once, but for pools
  Atomic<i64> pool_used_bytes;      // live blocks of pools
  Atomic<u64> pool_reserved_bytes;  // what pools hold, as the driver told last
  Atomic<i64> managed_bytes;
  Atomic<u64> peak_bytes;             // of counted_bytes()
  Atomic<u64> torch_allocated_bytes;  // as PyTorch's reporter told last
  Atomic<u64> torch_reserved_bytes;
  Atomic<u64> torch_time_ns;  // 0: it never did
  Atomic<u64> look_ns;        // when the driver was asked for the next two; 0: never
  Atomic<u64> free_bytes;
  Atomic<u64> total_bytes;
  Atomic<u64> look_counted_bytes;  // counted_bytes() then

  // What --limit-gpu counts: physical memory, once.
  u64 counted_bytes() const noexcept {
    const u64 used = at_least_zero(pool_used_bytes), held = pool_reserved_bytes;
    return at_least_zero(block_bytes) + (used > held ? used : held);
  }

  // By all: as the driver told last, and what this process has taken or given back since.
  u64 used_bytes() const noexcept {
    const u64 total = total_bytes, free = free_bytes, then = look_counted_bytes;
    const u64 told = total > free ? total - free : 0, now = counted_bytes();
    const u64 gone = then > now ? then - now : 0;
    const u64 used = now >= then ? told + (now - then) : told - (gone < told ? gone : told);
    return used < total ? used : total;
  }

  static u64 at_least_zero(i64 bytes) noexcept { return bytes < 0 ? 0 : static_cast<u64>(bytes); }
};
static_assert(offsetof(Device, limit_bytes) == 88 && offsetof(Device, look_ns) == 160 &&
              sizeof(Device) == 192);

// What something of a GPU is known by: an address or a handle, in one of these.
enum class DeviceKey : u8 {
  none,
  address,      // of a block, wherever its memory is
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

// What memory it is.
enum class DeviceKind : u8 {
  none,      // no memory of its own
  block,     // physical memory of the device: blocks, arrays, handles
  pooled,    // a block of a pool; `owner`: the pool
  managed,   // memory that moves between host and device
  host,      // host memory: pinned by the driver, or registered
  imported,  // another's memory: by IPC, from a handle, external
  reserved,  // address space
};

// Live, unless `flags` says otherwise. Slots are reused like LiveBlock's.
struct DeviceBlock {
  Atomic<u64> key;  // with `what`; 0: free slot (a key of 0 is none of the driver's)
  u64 bytes;
  u64 context;  // that it ends with; 0: with the process
  u64 owner;    // see DeviceKey and DeviceKind
  u32 holder;   // 0: none
  u32 device;   // entry in `devices`; 0: not known
  u32 birth_s;
  u32 references;  // of a handle: the program's and its mappings'
  u8 vendor;
  u8 what;  // DeviceKey
  u8 kind;  // DeviceKind
  u8 flags;
  u32 reserved;  // writer's own (free list)
};
inline constexpr u8 kDeviceDormant = 1;      // of a graph that has not been launched: not live
inline constexpr u8 kDeviceFreedInside = 2;  // by its graph itself: never live after a launch
static_assert(offsetof(DeviceBlock, holder) == 32 && offsetof(DeviceBlock, vendor) == 48 &&
              sizeof(DeviceBlock) == 56);

// The figures of a device at a refusal. 0: not known, unless said otherwise.
struct DeviceEvidence {
  u32 device;  // entry in `devices`; 0: no device's request, or not known whose
  u32 look_age_ms;
  u64 free_bytes, total_bytes;  // as the driver told
  u64 counted_bytes, limit_bytes;
  u64 managed_bytes;
  u64 pool_used_bytes, pool_reserved_bytes;
  u64 torch_allocated_bytes, torch_reserved_bytes;
  u64 torch_largest_free_bytes;  // piece inside PyTorch's segments; ~0: not known
};
static_assert(sizeof(DeviceEvidence) == 88);

// Beside the time line's points, where there are devices: the figures that were last known.
inline constexpr u32 kPointDevices = 8;
struct DevicePoint {
  u64 time_ns;  // of the point; 0: it is being written
  struct Figures {
    u64 counted_bytes;
    u64 used_bytes, total_bytes;  // as the driver told, so long before
    u64 torch_allocated_bytes, torch_reserved_bytes;
    u32 age_ms;
    u32 known;               // 1
  } devices[kPointDevices];  // entry in `devices`, less one
};
static_assert(sizeof(DevicePoint) == 8 + 48 * kPointDevices);

}  // namespace oomrec::session
