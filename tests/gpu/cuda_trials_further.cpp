// Each function of CUDA's table, once: virtual memory, memory of other processes.
#include "tests/gpu/cuda_trials.h"

namespace oomrec::gpu_trial {

// --- Virtual memory

GIVES(cuMemCreate, CUmemGenericAllocationHandle, kMain, (&out, kBytes, &kHandleProps, 0),
      f.cuMemRelease(out))
TAKES(cuMemRelease, CUmemGenericAllocationHandle, kMain,
      f.cuMemCreate(&out, kBytes, &kHandleProps, 0), (out))
GIVES(cuMemAddressReserve, CUdeviceptr, kVa, (&out, kBytes, 0, 0, 0),
      f.cuMemAddressFree(out, kBytes))
TAKES(cuMemAddressFree, CUdeviceptr, kVa, f.cuMemAddressReserve(&out, kBytes, 0, 0, 0),
      (out, kBytes))

OOMREC_TRIAL(cuMemImportFromShareableHandle) {
  const CUmemGenericAllocationHandle handle = new_handle();
  int shared = -1;
  need(other.cuMemExportToShareableHandle(&shared, handle, 1, 0));
  CUmemGenericAllocationHandle out = 0;
  gives({kVa}, out, [&] {
    return f.cuMemImportFromShareableHandle(&out, reinterpret_cast<void*>(std::intptr_t{shared}),
                                            1);
  });
  need(f.cuMemRelease(out));
  need(f.cuMemRelease(handle));
}

OOMREC_TRIAL(cuMemRetainAllocationHandle) {
  const Mapped mapped;
  CUmemGenericAllocationHandle out = 0;
  may_fail({kMain}, [&] {
    return f.cuMemRetainAllocationHandle(&out, reinterpret_cast<void*>(mapped.address));
  });
  CHECK(own_session::block_at(DeviceKey::handle, out)->references == 3);
  need(f.cuMemRelease(out));
}

OOMREC_TRIAL(cuMemMap) {
  CUdeviceptr address = 0;
  const CUmemGenericAllocationHandle handle = new_handle();
  need(f.cuMemAddressReserve(&address, kBytes, 0, 0, 0));
  const auto map = [&] { return f.cuMemMap(address, kBytes, 0, handle, 0); };
  check_failure({kMain}, map);
  moves_addresses(EventKind::map, {kVa, kBytes}, map);
  need(f.cuMemUnmap(address, kBytes));
  need(f.cuMemAddressFree(address, kBytes));
  need(f.cuMemRelease(handle));
}

OOMREC_TRIAL(cuMemUnmap) {
  CUdeviceptr address = 0;
  const CUmemGenericAllocationHandle handle = new_handle();
  need(f.cuMemAddressReserve(&address, kBytes, 0, 0, 0));
  need(f.cuMemMap(address, kBytes, 0, handle, 0));
  const auto unmap = [&] { return f.cuMemUnmap(address, kBytes); };
  fail(unmap);
  moves_addresses(EventKind::unmap, {kVa, kBytes}, unmap);
  need(f.cuMemAddressFree(address, kBytes));
  need(f.cuMemRelease(handle));
}

namespace {

// Maps and unmaps memory for one tile of a sparse array.
template <class MapArray>
void maps_a_tile(MapArray map_array) {
  constexpr CUDA_ARRAY3D_DESCRIPTOR kSparse{256, 256, 16, 0x20, 1, 0x40};
  CUarray array = nullptr;
  need(f.cuArray3DCreate_v2(&array, &kSparse));
  const CUmemGenericAllocationHandle handle = new_handle();
  CUarrayMapInfo change{};
  change.resource = array;
  change.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
  change.memHandle = handle;
  change.deviceBitMask = 1 << kOrdinal;
  may_fail({kMain}, [&] { return map_array(&change, 1, nullptr); });
  change.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
  need(map_array(&change, 1, nullptr));
  need(f.cuArrayDestroy(array));
  need(f.cuMemRelease(handle));
}

}  // namespace

OOMREC_TRIAL(cuMemMapArrayAsync) { maps_a_tile(f.cuMemMapArrayAsync); }
OOMREC_TRIAL(cuMemMapArrayAsync_ptsz) { maps_a_tile(f.cuMemMapArrayAsync_ptsz); }

// --- Multicast

namespace {

constexpr CUmulticastObjectProp kMulticastProps{1, kBytes, 0, 0};

struct Multicast {
  CUmemGenericAllocationHandle handle = 0;
  Multicast() { need(f.cuMulticastCreate(&handle, &kMulticastProps)); }
  ~Multicast() { f.cuMemRelease(handle); }
};

}  // namespace

GIVES(cuMulticastCreate, CUmemGenericAllocationHandle, kVa, (&out, &kMulticastProps),
      f.cuMemRelease(out))

#define MULTICAST(name, arguments)                       \
  OOMREC_TRIAL(name) {                                   \
    const Multicast multicast;                           \
    const Mapped memory;                                 \
    may_fail({kMain}, [&] { return f.name arguments; }); \
  }
MULTICAST(cuMulticastBindMem, (multicast.handle, 0, memory.handle, 0, kBytes, 0))
MULTICAST(cuMulticastBindMem_v2, (multicast.handle, kOrdinal, 0, memory.handle, 0, kBytes, 0))
MULTICAST(cuMulticastBindAddr, (multicast.handle, 0, memory.address, kBytes, 0))
MULTICAST(cuMulticastBindAddr_v2, (multicast.handle, kOrdinal, 0, memory.address, kBytes, 0))
MULTICAST(cuMulticastUnbind, (multicast.handle, kOrdinal, 0, kBytes))

// --- Memory of other processes and interfaces

namespace {

template <class Open>
void opens_ipc(Open open) {
  const CUdeviceptr block = new_block();
  CUipcMemHandle shared;
  need(other.cuIpcGetMemHandle(&shared, block));
  CUdeviceptr out = 0;
  gives({kVa, kBytes, 0}, out, [&] { return open(&out, shared, 1); });
  need(f.cuIpcCloseMemHandle(out));
  need(f.cuMemFree_v2(block));
}

CUDA_EXTERNAL_MEMORY_HANDLE_DESC external_of(std::uint64_t bytes) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.type = 1;
  description.size = bytes;
  return description;
}

struct External {
  CUexternalMemory memory = nullptr;
  External() {
    const auto description = external_of(kBytes);
    need(f.cuImportExternalMemory(&memory, &description));
  }
  ~External() { f.cuDestroyExternalMemory(memory); }
};

}  // namespace

OOMREC_TRIAL(cuIpcOpenMemHandle) { opens_ipc(f.cuIpcOpenMemHandle); }
OOMREC_TRIAL(cuIpcOpenMemHandle_v2) { opens_ipc(f.cuIpcOpenMemHandle_v2); }
OOMREC_TRIAL(cuIpcCloseMemHandle) {
  const CUdeviceptr block = new_block();
  CUipcMemHandle shared;
  need(other.cuIpcGetMemHandle(&shared, block));
  CUdeviceptr out = 0;
  need(f.cuIpcOpenMemHandle_v2(&out, shared, 1));
  takes({kVa, kBytes}, [&] { return f.cuIpcCloseMemHandle(out); });
  need(f.cuMemFree_v2(block));
}

OOMREC_TRIAL(cuImportExternalMemory) {
  const auto description = external_of(kBytes);
  CUexternalMemory out = nullptr;
  gives({kVa, kBytes}, out, [&] { return f.cuImportExternalMemory(&out, &description); });
  need(f.cuDestroyExternalMemory(out));
}
OOMREC_TRIAL(cuDestroyExternalMemory) {
  const auto description = external_of(kBytes);
  CUexternalMemory out = nullptr;
  need(f.cuImportExternalMemory(&out, &description));
  takes({kVa, kBytes}, [&] { return f.cuDestroyExternalMemory(out); });
}
OOMREC_TRIAL(cuExternalMemoryGetMappedBuffer) {
  const External external;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
  part.size = kBytes;
  CUdeviceptr out = 0;
  may_fail({kMain},
           [&] { return f.cuExternalMemoryGetMappedBuffer(&out, external.memory, &part); });
  need(f.cuMemFree_v2(out));
}
OOMREC_TRIAL(cuExternalMemoryGetMappedMipmappedArray) {
  const External external;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC part{};
  part.arrayDesc = {256, 256, 16, 0x20, 1, 0};
  part.numLevels = 1;
  CUmipmappedArray out = nullptr;
  may_fail({kMain},
           [&] { return f.cuExternalMemoryGetMappedMipmappedArray(&out, external.memory, &part); });
  need(f.cuMipmappedArrayDestroy(out));
}

}  // namespace oomrec::gpu_trial
