// Rows that CUDA's table and HIP's both have (front_end.h). The vendor's translate.h has the types,
// and DRIVER(name), the function's name, SINCE(version), and what a function of graphs needs.
#pragma once

// clang-format off
#define FAKE_BOTH_ROWS(X) \
  /* devices */ \
  X(DRIVER(DeviceGet), SINCE(2000), init, (int* device, int ordinal), is_device(ordinal) ? put(device, ordinal) : invalid_device) \
  X(DRIVER(DeviceGetName), SINCE(2000), init, (char* name, int size, int device), device_name(name, size, device)) \
  X(DRIVER(DeviceGetUuid), SINCE(9020), init, (void* uuid, int device), device_uuid(uuid, device)) \
  X(DRIVER(DeviceComputeCapability), SINCE(2000), init, (int* major, int* minor, int device), compute_capability(major, minor, device)) \
  X(DRIVER(DeviceGetPCIBusId), SINCE(4010), init, (char* text, int size, int device), pci_bus_id(text, size, device)) \
  X(DRIVER(DeviceGetByPCIBusId), SINCE(4010), init, (int* device, const char* text), device_of_pci_bus_id(device, text)) \
  X(DRIVER(DeviceCanAccessPeer), SINCE(4000), init, (int* can, int device, int peer), put(can, device != peer)) \
  X(DRIVER(DevicePrimaryCtxRetain), SINCE(7000), init, (ContextHandle* out, int device), retain_primary(handle_out(out), device)) \
  X(DRIVER(DevicePrimaryCtxRelease), SINCE(7000), init, (int device), release_primary(device)) \
  X(DRIVER(DevicePrimaryCtxReset), SINCE(7000), init, (int device), reset_primary(device)) \
  /* modules: whatever is loaded is accepted, nothing of it can run */ \
  X(DRIVER(ModuleLoad), SINCE(2000), context, (Module* out, const char* path), put_token(handle_out(out))) \
  X(DRIVER(ModuleLoadData), SINCE(2000), context, (Module* out, const void* image), put_token(handle_out(out))) \
  X(DRIVER(ModuleLoadDataEx), SINCE(2010), context, (Module* out, const void* image, unsigned count, JitOption* options, void** values), \
    put_token(handle_out(out))) \
  X(DRIVER(ModuleLoadFatBinary), SINCE(2000), context, (Module* out, const void* image), put_token(handle_out(out))) \
  X(DRIVER(ModuleUnload), SINCE(2000), context, (Module module), success) \
  X(DRIVER(LibraryLoadData), SINCE(12000), context, (Library* out, const void* code, JitOption* jit, void** jit_values, unsigned jit_count, LibraryOption* options, void** values, unsigned count), \
    put_token(handle_out(out))) \
  X(DRIVER(LibraryLoadFromFile), SINCE(12000), context, (Library* out, const char* path, JitOption* jit, void** jit_values, unsigned jit_count, LibraryOption* options, void** values, unsigned count), \
    put_token(handle_out(out))) \
  /* events */ \
  X(DRIVER(EventQuery), SINCE(2000), context, (EventHandle event), query_event(event)) \
  X(DRIVER(EventSynchronize), SINCE(2000), context, (EventHandle event), synchronize_event(event)) \
  X(DRIVER(EventElapsedTime), SINCE(2000), context, (float* milliseconds, EventHandle start, EventHandle end), elapsed_time(milliseconds, start, end)) \
  /* graphs */ \
  X(DRIVER(GraphCreate), SINCE(10000), for_graphs, (GraphHandle* out, unsigned flags), create_graph(handle_out(out))) \
  X(DRIVER(GraphDestroy), SINCE(10000), for_graphs, (GraphHandle graph), destroy_graph(graph)) \
  X(DRIVER(GraphClone), SINCE(10000), for_graphs, (GraphHandle* out, GraphHandle original), clone_graph(handle_out(out), original)) \
  X(DRIVER(GraphGetNodes), SINCE(10000), for_graphs, (GraphHandle graph, GraphNode* nodes, size_t* count), node_count(graph, handle_out(nodes), count)) \
  X(DRIVER(GraphAddEmptyNode), SINCE(10000), for_graphs, (GraphNode* node, GraphHandle graph, const GraphNode* after, size_t count), \
    add_other_node(handle_out(node), graph, kEmptyNode)) \
  X(DRIVER(GraphAddChildGraphNode), SINCE(10000), for_graphs, (GraphNode* node, GraphHandle graph, const GraphNode* after, size_t count, GraphHandle child), \
    add_child_node(handle_out(node), graph, child)) \
  X(DRIVER(GraphAddMemAllocNode), SINCE(11040), for_graphs, (GraphNode* node, GraphHandle graph, const GraphNode* after, size_t count, AllocationNode* params), \
    add_allocation(node, graph, params)) \
  X(DRIVER(GraphAddMemFreeNode), SINCE(11040), for_graphs, (GraphNode* node, GraphHandle graph, const GraphNode* after, size_t count, Pointer block), \
    add_free_node(handle_out(node), graph, address_of(block))) \
  X(DRIVER(GraphAddNode), SINCE(12020), for_graphs, (GraphNode* node, GraphHandle graph, const GraphNode* after, size_t count, NodeParams* params), \
    add_any_node(node, graph, params)) \
  X(DRIVER(GraphInstantiate), SINCE(10000), for_graphs, (GraphExec* out, GraphHandle graph, GraphNode* culprit, char* log, size_t size), \
    instantiate(handle_out(out), graph, 0)) \
  X(DRIVER(GraphInstantiateWithFlags), SINCE(11040), for_graphs, (GraphExec* out, GraphHandle graph, unsigned long long flags), \
    instantiate(handle_out(out), graph, flags)) \
  X(DRIVER(GraphExecDestroy), SINCE(10000), for_graphs, (GraphExec exec), destroy_exec(exec)) \
  X(DRIVER(DeviceGraphMemTrim), SINCE(11040), init, (int device), trim_graph_memory(device)) \
  X(DRIVER(DeviceGetGraphMemAttribute), SINCE(11040), init, (int device, int attribute, void* value), \
    get_graph_memory(device, attribute, static_cast<unsigned long long*>(value))) \
  X(DRIVER(DeviceSetGraphMemAttribute), SINCE(11040), init, (int device, int attribute, void* value), reset_graph_memory(device, attribute)) \
  /* pools */ \
  X(DRIVER(MemPoolCreate), SINCE(11020), init, (MemoryPool* out, const PoolProps* props), pool_of(out, props)) \
  X(DRIVER(MemPoolDestroy), SINCE(11020), init, (MemoryPool pool), destroy_pool(pool)) \
  X(DRIVER(MemPoolTrimTo), SINCE(11020), init, (MemoryPool pool, size_t keep), trim_pool(pool, keep)) \
  X(DRIVER(MemPoolGetAttribute), SINCE(11020), init, (MemoryPool pool, int attribute, void* value), get_pool_attribute(pool, attribute, value)) \
  X(DRIVER(MemPoolSetAttribute), SINCE(11020), init, (MemoryPool pool, int attribute, void* value), set_pool_attribute(pool, attribute, value)) \
  X(DRIVER(MemPoolExportToShareableHandle), SINCE(11020), init, (void* out, MemoryPool pool, HandleType type, PoolFlags flags), export_pool(out, pool)) \
  X(DRIVER(MemPoolImportFromShareableHandle), SINCE(11020), init, (MemoryPool* out, void* shared, HandleType type, PoolFlags flags), \
    import_pool(handle_out(out), shared)) \
  X(DRIVER(MemPoolExportPointer), SINCE(11020), init, (SharedPoolPointer* out, Pointer block), export_pointer(out, address_of(block))) \
  X(DRIVER(MemPoolImportPointer), SINCE(11020), context, (Pointer* block, MemoryPool pool, SharedPoolPointer* shared), \
    import_pointer(address_out(block), pool, shared)) \
  X(DRIVER(DeviceGetDefaultMemPool), SINCE(11020), init, (MemoryPool* out, int device), pool_of_device(out, device, default_pool)) \
  X(DRIVER(DeviceGetMemPool), SINCE(11020), init, (MemoryPool* out, int device), pool_of_device(out, device, device_pool)) \
  X(DRIVER(DeviceSetMemPool), SINCE(11020), init, (int device, MemoryPool pool), set_device_pool(device, pool)) \
  X(DRIVER(MemGetDefaultMemPool), SINCE(13000), init, (MemoryPool* out, Location* location, AllocationType type), \
    default_pool(handle_out(out), device_of(location))) \
  X(DRIVER(MemGetMemPool), SINCE(13000), init, (MemoryPool* out, Location* location, AllocationType type), \
    device_pool(handle_out(out), device_of(location))) \
  X(DRIVER(MemSetMemPool), SINCE(13000), init, (Location* location, AllocationType type, MemoryPool pool), set_device_pool(device_of(location), pool)) \
  /* virtual memory */ \
  X(DRIVER(MemGetAllocationGranularity), SINCE(10020), init, (size_t* bytes, const HandleProps* props, int option), put(bytes, kGranularity)) \
  X(DRIVER(MemCreate), SINCE(10020), init, (MemoryHandle* out, size_t bytes, const HandleProps* props, unsigned long long flags), \
    handle_of(out, bytes, props)) \
  X(DRIVER(MemRelease), SINCE(10020), init, (MemoryHandle handle), release_handle(pointer_of(address_of(handle)))) \
  X(DRIVER(MemRetainAllocationHandle), SINCE(11000), init, (MemoryHandle* out, void* address), retain_handle(core_handle(out), address_of(address))) \
  X(DRIVER(MemExportToShareableHandle), SINCE(10020), init, (void* out, MemoryHandle handle, HandleType type, unsigned long long flags), \
    export_handle(out, pointer_of(address_of(handle)))) \
  X(DRIVER(MemImportFromShareableHandle), SINCE(10020), init, (MemoryHandle* out, void* shared, HandleType type), \
    import_handle(core_handle(out), shared)) \
  X(DRIVER(MemAddressReserve), SINCE(10020), init, (Pointer* out, size_t bytes, size_t alignment, Pointer wanted, unsigned long long flags), \
    reserve(address_out(out), bytes)) \
  X(DRIVER(MemAddressFree), SINCE(10020), init, (Pointer address, size_t bytes), end_reservation(address_of(address), bytes)) \
  X(DRIVER(MemMap), SINCE(10020), init, (Pointer address, size_t bytes, size_t offset, MemoryHandle handle, unsigned long long flags), \
    map(address_of(address), bytes, offset, pointer_of(address_of(handle)))) \
  X(DRIVER(MemUnmap), SINCE(10020), init, (Pointer address, size_t bytes), unmap(address_of(address), bytes)) \
  X(DRIVER(MemSetAccess), SINCE(10020), init, (Pointer address, size_t bytes, const void* access, size_t count), \
    set_access(address_of(address), bytes)) \
  /* memory of other processes and interfaces */ \
  X(DRIVER(IpcGetMemHandle), SINCE(4010), context, (IpcHandle* out, Pointer block), ipc_handle(out, address_of(block))) \
  X(DRIVER(IpcOpenMemHandle), SINCE(4010), context, (Pointer* out, IpcHandle shared, unsigned flags), open_ipc(address_out(out), &shared)) \
  X(DRIVER(ImportExternalMemory), SINCE(10000), context, (ExternalMemory* out, const ExternalDescription* shared), \
    shared == nullptr ? invalid_value : import_external(handle_out(out), shared->size)) \
  X(DRIVER(ExternalMemoryGetMappedBuffer), SINCE(10000), context, (Pointer* out, ExternalMemory memory, const ExternalBuffer* part), \
    part == nullptr ? invalid_value : external_buffer(address_out(out), memory, part->offset, part->size))
// clang-format on
