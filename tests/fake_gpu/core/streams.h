// Streams and events. All work is done immediately. They only carry the state of a
// capture.
#pragma once

#include <cstdint>

#include "tests/fake_gpu/core/graphs.h"

namespace fake_gpu {

struct Context;

int create_stream(void** out, unsigned flags, int priority);
int destroy_stream(void* stream);
int synchronize_stream(void* stream);
int synchronize_device();
int stream_flags(void* stream, unsigned* flags);
int stream_priority(void* stream, int* priority);
int stream_id(void* stream, unsigned long long* id);
int stream_context(void* stream, void** context);
int wait_event(void* stream, void* event);  // may join the capture that the event belongs to

int begin_capture(void* stream, void* graph);  // graph 0: a new one
int end_capture(void* stream, void** graph);
int capture_info(void* stream, int* status, unsigned long long* id, void** graph);

int create_event(void** out);
int destroy_event(void* event);
int record_event(void* event, void* stream);
int query_event(void* event);
int synchronize_event(void* event);
int elapsed_time(float* milliseconds, void* start, void* end);

bool is_stream(const void* stream);         // including the default ones
Graph* captured_graph(const void* stream);  // null: it is not capturing
void end_streams_of(Context* context);

}  // namespace fake_gpu
