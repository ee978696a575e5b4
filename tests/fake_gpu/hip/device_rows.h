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
  X(hipDeviceTotalMem,    0, init, (size_t* bytes, hipDevice_t device), is_device(device) ? put(bytes, capacity(device)) : invalid_device) \
  X(hipGetDeviceProperties, 0, init, (void* properties, int device),   device_properties(properties, device)) \
  X(hipDeviceSynchronize, 0, context, (),                              synchronize_device()) \
  X(hipDeviceReset,       0, context, (),                              reset_primary(thread_device())) \
  X(hipCtxCreate,         0, init, (hipCtx_t* out, unsigned flags, hipDevice_t device), create_aside(handle_out(out), flags, device)) \
  X(hipCtxDestroy,        0, init, (hipCtx_t handle),                  destroy_context(handle)) \
  /* look-ups */ \
  X(hipGetProcAddress,     0, none, (const char* name, void** function, int version, uint64_t flags, int* status), look_up(name, function, flags, status)) \
  X(hipGetProcAddress_spt, 0, none, (const char* name, void** function, int version, uint64_t flags, int* status), look_up(name, function, kPerThreadStream, status)) \
  X(hipGetDriverEntryPoint,     0, none, (const char* name, void** function, unsigned long long flags, int* status), look_up(name, function, flags, status)) \
  X(hipGetDriverEntryPoint_spt, 0, none, (const char* name, void** function, unsigned long long flags, int* status), look_up(name, function, kPerThreadStream, status)) \
  /* modules: whatever is loaded is accepted, nothing of it can run */ \
  X(hipModuleGetFunction,   0, context, (void** out, hipModule_t module, const char* name), put_token(handle_out(out))) \
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
  /* graphs */ \
  X(hipDrvGraphAddMemFreeNode,   0, context, (hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* after, size_t count, hipDeviceptr_t block), \
                                             add_free_node(handle_out(node), graph, address_of(block))) \
  X(hipGraphInstantiateWithParams, 0, context, (hipGraphExec_t* out, hipGraph_t graph, hipGraphInstantiateParams* params), \
                                             instantiate_with(handle_out(out), graph, params)) \
  X(hipGraphUpload,              0, context, (hipGraphExec_t exec, hipStream_t stream),    is_stream(stream) ? success : invalid_handle) \
  X(hipGraphLaunch,              0, context, (hipGraphExec_t exec, hipStream_t stream),    launch(exec, stream)) \
  X(hipGraphLaunch_spt,          0, context, (hipGraphExec_t exec, hipStream_t stream),    launch(exec, stream))
// clang-format on
