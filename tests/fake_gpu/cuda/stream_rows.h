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
  X(cuEventElapsedTime_v2, 12080, context, (float* milliseconds, CUevent start, CUevent end), elapsed_time(milliseconds, start, end)) \
  FAKE_CUDA_PTSZ(X, cuEventRecord,         2000, context, (CUevent event, CUstream stream),                   record_event(event, stream)) \
  FAKE_CUDA_PTSZ(X, cuEventRecordWithFlags, 11010, context, (CUevent event, CUstream stream, unsigned flags), record_event(event, stream)) \
  /* graphs */ \
  X(cuGraphNodeGetType,   10000, init,    (CUgraphNode node, int* type),                      node_type(node, type)) \
  X(cuGraphAddNode_v2,    12030, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
                                          add_any_node(node, graph, params)) \
  X(cuGraphAddNode_v3,    13020, init,    (CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params), \
                                          add_any_node(node, graph, params)) \
  X(cuGraphInstantiate_v2,       11000, init, (CUgraphExec* out, CUgraph graph, CUgraphNode* culprit, char* log, size_t size), \
                                              instantiate(handle_out(out), graph, 0)) \
  FAKE_CUDA_PTSZ(X, cuGraphInstantiateWithParams, 12000, init, (CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), \
                                              instantiate_with(handle_out(out), graph, params)) \
  FAKE_CUDA_PTSZ(X, cuGraphUpload,        11010, context, (CUgraphExec exec, CUstream stream),                is_stream(stream) ? success : invalid_handle) \
  FAKE_CUDA_PTSZ(X, cuGraphLaunch,        10000, context, (CUgraphExec exec, CUstream stream),                launch(exec, stream))
// clang-format on
