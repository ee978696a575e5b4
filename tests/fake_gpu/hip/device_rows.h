// Devices, contexts, modules, streams, events and graphs. Rows: tests/fake_gpu/core/front_end.h.
#pragma once

// clang-format off
#define FAKE_HIP_DEVICE_ROWS(X) \
  /* the runtime and its devices */ \
  X(hipInit,              0, init, (unsigned flags),                   flags == 0 ? success : invalid_value) \
  X(hipDriverGetVersion,  0, none, (int* version),                     put(version, kRuntimeVersion)) \
  X(hipRuntimeGetVersion, 0, none, (int* version),                     put(version, kRuntimeVersion)) \
  X(hipGetDeviceCount,    0, none, (int* count),                       count_devices(count)) \
  X(hipGetDevice,         0, init, (int* device),                      put(device, thread_device())) \
  X(hipSetDevice,         0, init, (int device),                       set_thread_device(device)) \
  X(hipDeviceGet,         0, init, (hipDevice_t* device, int ordinal), is_device(ordinal) ? put(device, ordinal) : invalid_device) \
  X(hipDeviceGetName,     0, init, (char* name, int size, hipDevice_t device), device_name(name, size, device)) \
  X(hipDeviceGetUuid,     0, init, (void* uuid, hipDevice_t device),   device_uuid(uuid, device)) \
  X(hipDeviceTotalMem,    0, init, (size_t* bytes, hipDevice_t device), is_device(device) ? put(bytes, capacity(device)) : invalid_device) \
  X(hipGetDeviceProperties, 0, init, (void* properties, int device),   device_properties(properties, device)) \
  X(hipDeviceComputeCapability, 0, init, (int* major, int* minor, hipDevice_t device), compute_capability(major, minor, device)) \
  X(hipDeviceGetPCIBusId, 0, init, (char* text, int size, int device), pci_bus_id(text, size, device)) \
  X(hipDeviceGetByPCIBusId, 0, init, (int* device, const char* text),  device_of_pci_bus_id(device, text)) \
  X(hipDeviceCanAccessPeer, 0, init, (int* can, int device, int peer), put(can, device != peer)) \
  X(hipDeviceSynchronize, 0, context, (),                              synchronize_device()) \
  X(hipDeviceReset,       0, context, (),                              reset_primary(thread_device())) \
  X(hipDevicePrimaryCtxRetain,  0, init, (hipCtx_t* out, hipDevice_t device), retain_primary(handle_out(out), device)) \
  X(hipDevicePrimaryCtxRelease, 0, init, (hipDevice_t device),         release_primary(device)) \
  X(hipDevicePrimaryCtxReset,   0, init, (hipDevice_t device),         reset_primary(device)) \
  X(hipCtxCreate,         0, init, (hipCtx_t* out, unsigned flags, hipDevice_t device), create_aside(handle_out(out), flags, device)) \
  X(hipCtxDestroy,        0, init, (hipCtx_t handle),                  destroy_context(handle)) \
  /* look-ups */ \
  X(hipGetProcAddress,     0, none, (const char* name, void** function, int version, uint64_t flags, int* status), look_up(name, function, flags, status)) \
  X(hipGetProcAddress_spt, 0, none, (const char* name, void** function, int version, uint64_t flags, int* status), look_up(name, function, kPerThreadStream, status)) \
  X(hipGetDriverEntryPoint,     0, none, (const char* name, void** function, unsigned long long flags, int* status), look_up(name, function, flags, status)) \
  X(hipGetDriverEntryPoint_spt, 0, none, (const char* name, void** function, unsigned long long flags, int* status), look_up(name, function, kPerThreadStream, status)) \
  /* modules: whatever is loaded is accepted, nothing of it can run */ \
  X(hipModuleLoad,          0, context, (hipModule_t* out, const char* path),  put_token(handle_out(out))) \
  X(hipModuleLoadData,      0, context, (hipModule_t* out, const void* image), put_token(handle_out(out))) \
  X(hipModuleLoadDataEx,    0, context, (hipModule_t* out, const void* image, unsigned count, hipJitOption* options, void** values), put_token(handle_out(out))) \
  X(hipModuleLoadFatBinary, 0, context, (hipModule_t* out, const void* image), put_token(handle_out(out))) \
  X(hipModuleUnload,        0, context, (hipModule_t module),                  success) \
  X(hipModuleGetFunction,   0, context, (void** out, hipModule_t module, const char* name), put_token(handle_out(out))) \
  X(hipLibraryLoadData,     0, context, (hipLibrary_t* out, const void* code, hipJitOption* jit, void** jit_values, unsigned jit_count, hipLibraryOption* options, void** values, unsigned count), \
                                        put_token(handle_out(out))) \
  X(hipLibraryLoadFromFile, 0, context, (hipLibrary_t* out, const char* path, hipJitOption* jit, void** jit_values, unsigned jit_count, hipLibraryOption* options, void** values, unsigned count), \
                                        put_token(handle_out(out))) \
  /* streams and events */ \
  X(hipStreamCreate,             0, context, (hipStream_t* out),                           create_stream(handle_out(out), 0, 0)) \
  X(hipStreamCreateWithFlags,    0, context, (hipStream_t* out, unsigned flags),           create_stream(handle_out(out), flags, 0)) \
  X(hipStreamCreateWithPriority, 0, context, (hipStream_t* out, unsigned flags, int priority), create_stream(handle_out(out), flags, priority)) \
  X(hipExtStreamCreateWithCUMask, 0, context, (hipStream_t* out, uint32_t words, const uint32_t* mask), create_stream(handle_out(out), 0, 0)) \
  X(hipStreamDestroy,            0, context, (hipStream_t stream),                         destroy_stream(stream)) \
  X(hipStreamSynchronize,        0, context, (hipStream_t stream),                         synchronize_stream(stream)) \
  X(hipStreamQuery,              0, context, (hipStream_t stream),                         is_stream(stream) ? success : invalid_handle) \
  X(hipStreamWaitEvent,          0, context, (hipStream_t stream, hipEvent_t event, unsigned flags), wait_event(stream, event)) \
  X(hipStreamGetFlags,           0, context, (hipStream_t stream, unsigned* flags),        stream_flags(stream, flags)) \
  X(hipStreamGetPriority,        0, context, (hipStream_t stream, int* priority),          stream_priority(stream, priority)) \
  X(hipStreamBeginCapture,       0, context, (hipStream_t stream, int mode),               begin_capture(stream, nullptr)) \
  X(hipStreamEndCapture,         0, context, (hipStream_t stream, hipGraph_t* out),        end_capture(stream, handle_out(out))) \
  X(hipStreamIsCapturing,        0, context, (hipStream_t stream, int* status),            capture_info(stream, status, nullptr, nullptr)) \
  X(hipStreamGetCaptureInfo,     0, context, (hipStream_t stream, int* status, unsigned long long* id), capture_info(stream, status, id, nullptr)) \
  X(hipStreamGetCaptureInfo_v2,  0, context, (hipStream_t stream, int* status, unsigned long long* id, hipGraph_t* graph, const hipGraphNode_t** after, size_t* count), \
                                             capture_info(stream, status, id, graph == nullptr ? nullptr : handle_out(graph))) \
  X(hipEventCreate,              0, context, (hipEvent_t* out),                            create_event(handle_out(out))) \
  X(hipEventCreateWithFlags,     0, context, (hipEvent_t* out, unsigned flags),            create_event(handle_out(out))) \
  X(hipEventDestroy,             0, context, (hipEvent_t event),                           destroy_event(event)) \
  X(hipEventRecord,              0, context, (hipEvent_t event, hipStream_t stream),       record_event(event, stream)) \
  X(hipEventQuery,               0, context, (hipEvent_t event),                           query_event(event)) \
  X(hipEventSynchronize,         0, context, (hipEvent_t event),                           synchronize_event(event)) \
  X(hipEventElapsedTime,         0, context, (float* milliseconds, hipEvent_t start, hipEvent_t end), elapsed_time(milliseconds, start, end)) \
  /* graphs */ \
  X(hipGraphCreate,              0, context, (hipGraph_t* out, unsigned flags),            create_graph(handle_out(out))) \
  X(hipGraphDestroy,             0, context, (hipGraph_t graph),                           destroy_graph(graph)) \
  X(hipGraphClone,               0, context, (hipGraph_t* out, hipGraph_t original),       clone_graph(handle_out(out), original)) \
  X(hipGraphGetNodes,            0, context, (hipGraph_t graph, hipGraphNode_t* nodes, size_t* count), node_count(graph, handle_out(nodes), count)) \
  X(hipGraphAddEmptyNode,        0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count), \
                                             add_other_node(handle_out(node), graph, kEmptyNode)) \
  X(hipGraphAddChildGraphNode,   0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipGraph_t child), \
                                             add_child_node(handle_out(node), graph, child)) \
  X(hipGraphAddMemAllocNode,     0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipMemAllocNodeParams* params), \
                                             add_allocation(node, graph, params)) \
  X(hipGraphAddMemFreeNode,      0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, void* block), \
                                             add_free_node(handle_out(node), graph, address_of(block))) \
  X(hipDrvGraphAddMemFreeNode,   0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipDeviceptr_t block), \
                                             add_free_node(handle_out(node), graph, address_of(block))) \
  X(hipGraphAddNode,             0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipGraphNodeParams* params), \
                                             add_any_node(node, graph, params)) \
  X(hipGraphInstantiate,         0, context, (hipGraphExec_t* out, hipGraph_t graph, hipGraphNode_t* culprit, char* log, size_t size), \
                                             instantiate(handle_out(out), graph, 0)) \
  X(hipGraphInstantiateWithFlags, 0, context, (hipGraphExec_t* out, hipGraph_t graph, unsigned long long flags), instantiate(handle_out(out), graph, flags)) \
  X(hipGraphInstantiateWithParams, 0, context, (hipGraphExec_t* out, hipGraph_t graph, hipGraphInstantiateParams* params), \
                                             instantiate_with(handle_out(out), graph, params)) \
  X(hipGraphUpload,              0, context, (hipGraphExec_t exec, hipStream_t stream),    is_stream(stream) ? success : invalid_handle) \
  X(hipGraphLaunch,              0, context, (hipGraphExec_t exec, hipStream_t stream),    launch(exec, stream)) \
  X(hipGraphLaunch_spt,          0, context, (hipGraphExec_t exec, hipStream_t stream),    launch(exec, stream)) \
  X(hipGraphExecDestroy,         0, context, (hipGraphExec_t exec),                        destroy_exec(exec)) \
  X(hipDeviceGraphMemTrim,       0, init,    (int device),                                 trim_graph_memory(device)) \
  X(hipDeviceGetGraphMemAttribute, 0, init,  (int device, int attribute, void* value), \
                                             get_graph_memory(device, attribute, static_cast<unsigned long long*>(value))) \
  X(hipDeviceSetGraphMemAttribute, 0, init,  (int device, int attribute, void* value),     reset_graph_memory(device, attribute))
// clang-format on
