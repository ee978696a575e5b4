// What happens to an event of a GPU. The shim's wrappers of drivers call these; nothing here knows
// a driver's functions or asks one anything: what a driver alone can tell comes with the call.
//
// The promises of recorder.h hold. Every event is recorded; totals, holders and figures of devices
// are exact. Memory is physical memory once: a block, an array, a handle, what pools hold. Address
// space, mappings of a handle and another's memory are in a space of their own (`cuda_va`), host
// memory in another (`cuda_host`).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/devices.h"
#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"
#include "recorder/live/device_blocks.h"
#include "recorder/recorder.h"

namespace oomrec::recorder {

using live::DeviceName;
using session::DeviceKey;
using session::DeviceKind;
using session::Vendor;

// --- Drivers and devices -------------------------------------------------------------------------

// A program has reached a driver. False: there is no room to record it.
bool meet_driver(InHook, Vendor) noexcept;

enum class LookUp : std::uint8_t { linked, dlsym, resolver };
void on_look_up(InHook, Vendor, LookUp) noexcept;  // of one of the wrapped functions
void describe_driver(InHook, Vendor, std::string_view path, std::uint32_t version,
                     std::uint32_t wrapped) noexcept;

// Entry of the driver's device `ordinal`; 0: it was not described yet, or no room.
std::uint32_t device_entry(InHook, Vendor, std::int32_t ordinal) noexcept;
struct DeviceIdentity {
  Vendor vendor;
  std::int32_t ordinal;
  std::uint8_t uuid[16];
  char name[64];  // NUL-terminated
};
std::uint32_t describe_device(InHook, const DeviceIdentity&) noexcept;

// Whether the driver should be asked for the device's free and total bytes: at most ten times a
// second, and at once where a request was refused; never in a sandbox.
bool wants_look(InHook, std::uint32_t device, bool refused) noexcept;
void on_device_look(InHook, std::uint32_t device, std::uint64_t free_bytes,
                    std::uint64_t total_bytes) noexcept;
// The same of a pool that has just given memory: it has grown, or a limit counts what it holds.
bool wants_pool_look(InHook, std::uint32_t device) noexcept;
// What a pool holds, as the driver tells it. A pool that is met is one that holds nothing yet.
void on_pool_look(InHook, const DeviceName& pool, std::uint32_t device,
                  std::uint64_t reserved_bytes) noexcept;
void on_pool_end(InHook, Api, const DeviceName& pool) noexcept;
// Whose memory it gives; 0: not known.
std::uint32_t device_of_pool(InHook, const DeviceName& pool) noexcept;
// The handles of a device's known pools: how many of them are in `handles` now.
std::size_t pools_of(InHook, Vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept;

// --- Memory --------------------------------------------------------------------------------------

// What a call gave the program.
struct DeviceMemory {
  Api api;
  DeviceName name;
  DeviceKind kind;
  std::uint64_t bytes;
  std::uint32_t device = 0;   // entry; 0: not known whose
  std::uint64_t context = 0;  // that it ends with; 0: with the process
  std::uint64_t owner = 0;    // session/devices.h
};

Space space_of(Vendor, DeviceKind) noexcept;

// Whether there are limits of devices, or rules of --fail: else nothing needs to be asked first.
bool may_refuse_on_device() noexcept;

// False: the request would pass the device's limit, or a rule of --fail speaks of it: then
// request.rule says which. Called before the real function. `kind`: of what it would give.
bool admits_on_device(InHook, Request&, DeviceKind) noexcept;
// The former alone: asked again when what the device's pools hold has been looked at.
bool is_within_device_limit(InHook, const Request&, DeviceKind) noexcept;

void on_device_allocate(InHook, const DeviceMemory&) noexcept;

// Called *before* the real release; the result restores what a failed one did not release. Of a
// handle, one reference less. Frees count against the device that allocated.
struct DeviceReleased {
  live::DeviceBlock block;  // name.key 0: nothing was known by that name
  bool gone = false;        // and not only a reference less
};
DeviceReleased on_device_free(InHook, Api, const DeviceName&) noexcept;
void restore_on_device(InHook, const DeviceReleased&) noexcept;

// One more reference of the program to a handle. False: it is not known.
bool on_device_retain(InHook, const DeviceName& handle) noexcept;

// A handle's memory at an address: keeps the handle's memory until it is unmapped.
void on_device_map(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t handle) noexcept;
// All mappings from `address` on that lie in these `bytes`.
void on_device_unmap(InHook, Api, Vendor, std::uint64_t address, std::uint64_t bytes) noexcept;

// All that ends with a context.
void on_context_end(InHook, Api, Vendor, std::uint64_t context) noexcept;
// With a device's primary context, which has its pools, too. Either may be 0: not known.
void on_device_reset(InHook, Api, Vendor, std::uint64_t context, std::uint32_t device) noexcept;

// --- Graphs: a block belongs to its graph, and is live from a launch on
// ------------------------------

void on_graph_block(InHook, std::uint64_t graph, const DeviceMemory&) noexcept;
void on_graph_free(InHook, Vendor, std::uint64_t graph, std::uint64_t address) noexcept;
void on_graph_instantiated(InHook, Vendor, std::uint64_t graph, std::uint64_t executable) noexcept;
void on_graph_launched(InHook, Api, Vendor, std::uint64_t executable) noexcept;
void on_graph_destroyed(InHook, Vendor, std::uint64_t graph) noexcept;
void on_executable_destroyed(InHook, Vendor, std::uint64_t executable) noexcept;

// --- PyTorch
// ---------------------------------------------------------------------------------------

// Its reporters reach us: from now on a driver's refusal of its allocator is told when it says what
// became of it.
void meet_torch() noexcept;

// Whether the blocks of its allocator on the CPU are wanted, too.
bool wants_torch_on_cpu() noexcept;

// What its allocator tells of each block: `change` bytes more, or less, at `address`, and what it
// has allocated and reserved on the device since.
struct TorchReport {
  Api api;
  std::uint64_t address;
  std::int64_t change;
  std::uint64_t allocated_bytes;
  std::uint64_t reserved_bytes;
  std::uint32_t device;  // entry; 0: the CPU, or not known whose
};
void on_torch_memory(InHook, const TorchReport&) noexcept;
// It gives up: `change` bytes cannot be had of a GPU.
void on_torch_failure(InHook, const TorchReport&) noexcept;

}  // namespace oomrec::recorder
