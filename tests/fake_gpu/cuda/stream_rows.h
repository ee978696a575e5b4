// Streams, events and graphs. Rows: tests/fake_gpu/core/front_end.h; FAKE_CUDA_PTSZ and _PTDS
// give both names of a function that has a form for the per-thread default stream.
#pragma once

// clang-format off
#define FAKE_CUDA_STREAM_ROWS(X) \
  /* streams */ \
  X(cuStreamCreate,             2000, context, (CUstream* out, unsigned flags),               create_stream(handle_out(out), flags, 0)) \
  X(cuStreamCreateWithPriority, 5050, context, (CUstream* out, unsigned flags, int priority), create_stream(handle_out(out), flags, priority)) \
  X(cuGreenCtxStreamCreate,    12050, init,    (CUstream* out, CUgreenCtx green, unsigned flags, int priority), \
                                               create_stream(handle_out(out), flags, priority)) \
  X(cuStreamDestroy,            2000, init,    (CUstream stream),                             destroy_stream(stream)) \
  X(cuStreamDestroy_v2,         4000, init,    (CUstream stream),                             destroy_stream(stream)) \
  FAKE_CUDA_PTSZ(X, cuStreamSynchronize,        2000, context, (CUstream stream),                             synchronize_stream(stream)) \
  FAKE_CUDA_PTSZ(X, cuStreamQuery,              2000, context, (CUstream stream),                             is_stream(stream) ? success : invalid_handle) \
  FAKE_CUDA_PTSZ(X, cuStreamWaitEvent,          3020, context, (CUstream stream, CUevent event, unsigned flags), wait_event(stream, event)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetFlags,           5050, context, (CUstream stream, unsigned* flags),            stream_flags(stream, flags)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetPriority,        5050, context, (CUstream stream, int* priority),              stream_priority(stream, priority)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetId,             12000, context, (CUstream stream, unsigned long long* id),     stream_id(stream, id)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetCtx,             9020, context, (CUstream stream, CUcontext* out),             stream_context(stream, handle_out(out))) \
  /* capture */ \
  FAKE_CUDA_PTSZ(X, cuStreamBeginCapture,    10000, context, (CUstream stream),                               begin_capture(stream, nullptr)) \
  FAKE_CUDA_PTSZ(X, cuStreamBeginCapture_v2, 10010, context, (CUstream stream, int mode),                     begin_capture(stream, nullptr)) \
  FAKE_CUDA_PTSZ(X, cuStreamBeginCaptureToGraph, 12030, context, (CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, int mode), \
                                             graph == nullptr ? invalid_value : begin_capture(stream, graph)) \
  FAKE_CUDA_PTSZ(X, cuStreamEndCapture,      10000, context, (CUstream stream, CUgraph* out),                 end_capture(stream, handle_out(out))) \
  FAKE_CUDA_PTSZ(X, cuStreamIsCapturing,     10000, context, (CUstream stream, int* status),                  capture_info(stream, status, nullptr, nullptr)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetCaptureInfo,  10010, context, (CUstream stream, int* status, cuuint64_t* id),  get_capture_info(stream, status, id, nullptr, nullptr)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetCaptureInfo_v2, 11030, context, (CUstream stream, int* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** after, size_t* count), \
                                             get_capture_info(stream, status, id, graph, count)) \
  FAKE_CUDA_PTSZ(X, cuStreamGetCaptureInfo_v3, 12030, context, (CUstream stream, int* status, cuuint64_t* id, CUgraph* graph, const CUgraphNode** after, const CUgraphEdgeData** edges, size_t* count), \
                                             get_capture_info(stream, status, id, graph, count)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, init, (int* mode),                              exchange_capture_mode(mode)) \
  /* events */ \
  X(cuEventCreate,         2000, context, (CUevent* out, unsigned flags),                     create_event(handle_out(out))) \
  X(cuEventDestroy,        2000, init,    (CUevent event),                                    destroy_event(event)) \
  X(cuEventDestroy_v2,     4000, init,    (CUevent event),                                    destroy_event(event)) \
  X(cuEventQuery,          2000, context, (CUevent event),                                    query_event(event)) \
  X(cuEventSynchronize,    2000, context, (CUevent event),                                    synchronize_event(event)) \
  X(cuEventElapsedTime,    2000, context, (float* milliseconds, CUevent start, CUevent end),  elapsed_time(milliseconds, start, end)) \
  X(cuEventElapsedTime_v2, 12080, context, (float* milliseconds, CUevent start, CUevent end), elapsed_time(milliseconds, start, end)) \
  FAKE_CUDA_PTSZ(X, cuEventRecord,         2000, context, (CUevent event, CUstream stream),                   record_event(event, stream)) \
  FAKE_CUDA_PTSZ(X, cuEventRecordWithFlags, 11010, context, (CUevent event, CUstream stream, unsigned flags), record_event(event, stream)) \
  /* graphs */ \
  X(cuGraphCreate,        10000, init,    (CUgraph* out, unsigned flags),                     create_graph(handle_out(out))) \
  X(cuGraphDestroy,       10000, init,    (CUgraph graph),                                    destroy_graph(graph)) \
  X(cuGraphClone,         10000, init,    (CUgraph* out, CUgraph original),                   clone_graph(handle_out(out), original)) \
  X(cuGraphGetNodes,      10000, init,    (CUgraph graph, CUgraphNode* nodes, size_t* count), node_count(graph, handle_out(nodes), count)) \
  X(cuGraphNodeGetType,   10000, init,    (CUgraphNode node, int* type),                      node_type(node, type)) \
  X(cuGraphAddEmptyNode,  10000, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count), \
                                          add_other_node(handle_out(node), graph, kEmptyNode)) \
  X(cuGraphAddChildGraphNode, 10000, init, (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child), \
                                          add_child_node(handle_out(node), graph, child)) \
  X(cuGraphAddMemAllocNode, 11040, init,  (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params), \
                                          add_allocation(node, graph, params)) \
  X(cuGraphAddMemFreeNode, 11040, init,   (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr block), \
                                          add_free_node(handle_out(node), graph, block)) \
  X(cuGraphAddNode,       12020, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraphNodeParams* params), \
                                          add_any_node(node, graph, params)) \
  X(cuGraphAddNode_v2,    12030, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
                                          add_any_node(node, graph, params)) \
  X(cuGraphAddNode_v3,    13020, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
                                          add_any_node(node, graph, params)) \
  X(cuGraphInstantiate,          10000, init, (CUgraphExec* out, CUgraph graph, CUgraphNode* culprit, char* log, size_t size), \
                                              instantiate(handle_out(out), graph, 0)) \
  X(cuGraphInstantiate_v2,       11000, init, (CUgraphExec* out, CUgraph graph, CUgraphNode* culprit, char* log, size_t size), \
                                              instantiate(handle_out(out), graph, 0)) \
  X(cuGraphInstantiateWithFlags, 11040, init, (CUgraphExec* out, CUgraph graph, unsigned long long flags), \
                                              instantiate(handle_out(out), graph, flags)) \
  FAKE_CUDA_PTSZ(X, cuGraphInstantiateWithParams, 12000, init, (CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), \
                                              instantiate_with(handle_out(out), graph, params)) \
  FAKE_CUDA_PTSZ(X, cuGraphUpload,        11010, context, (CUgraphExec exec, CUstream stream),                is_stream(stream) ? success : invalid_handle) \
  FAKE_CUDA_PTSZ(X, cuGraphLaunch,        10000, context, (CUgraphExec exec, CUstream stream),                launch(exec, stream)) \
  X(cuGraphExecDestroy,   10000, init,    (CUgraphExec exec),                                 destroy_exec(exec)) \
  X(cuDeviceGraphMemTrim, 11040, init,    (CUdevice device),                                  trim_graph_memory(device)) \
  X(cuDeviceGetGraphMemAttribute, 11040, init, (CUdevice device, int attribute, void* value), \
                                          get_graph_memory(device, attribute, static_cast<unsigned long long*>(value))) \
  X(cuDeviceSetGraphMemAttribute, 11040, init, (CUdevice device, int attribute, void* value), reset_graph_memory(device, attribute))
// clang-format on
