#include "tests/fake_gpu/core/streams.h"

#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/pools.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {
namespace {

struct Stream {
  Context* context;
  unsigned flags;
  int priority;
  unsigned long long id;
  Graph* captured;
  bool origin;  // it began the capture and did not join it
};

struct Event {
  Context* context;
  Graph* captured;  // the graph of the stream that recorded it
};

Table<Stream, 4096> g_streams;
Table<Event, 16384> g_events;
unsigned long long g_last_id = 2;

// 0, the legacy one and the one of the thread.
bool is_default(const void* stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

template <class Out>
int get_of_stream(void* handle, Out Stream::*field, Out of_default, Out* out) {
  if (!is_stream(handle)) return invalid_handle;
  if (out == nullptr) return invalid_value;
  const Stream* const stream = g_streams.find(handle);
  *out = stream == nullptr ? of_default : stream->*field;
  return success;
}

}  // namespace

bool is_stream(const void* stream) {
  return is_default(stream) || g_streams.find(stream) != nullptr;
}

Graph* captured_graph(const void* handle) {
  const Stream* const stream = g_streams.find(handle);
  return stream == nullptr ? nullptr : stream->captured;
}

int create_stream(void** out, unsigned flags, int priority) {
  if (out == nullptr) return invalid_value;
  Stream* const stream = g_streams.take();
  if (stream == nullptr) return out_of_memory;
  *stream = {current(), flags, priority, ++g_last_id, nullptr, false};
  *out = stream;
  return success;
}

int destroy_stream(void* handle) {
  Stream* const stream = g_streams.find(handle);
  if (stream == nullptr) return invalid_handle;
  g_streams.give_back(stream);
  return success;
}

int synchronize_stream(void* stream) {
  if (!is_stream(stream)) return invalid_handle;
  if (captured_graph(stream) != nullptr) return capture_unsupported;
  return synchronize_device();
}

int synchronize_device() {
  release_unused(current()->device);
  return success;
}

int stream_flags(void* stream, unsigned* flags) {
  return get_of_stream(stream, &Stream::flags, 0u, flags);
}

int stream_priority(void* stream, int* priority) {
  return get_of_stream(stream, &Stream::priority, 0, priority);
}

int stream_id(void* stream, unsigned long long* id) {
  const auto of_default = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(stream));
  return get_of_stream(stream, &Stream::id, of_default, id);
}

int stream_context(void* stream, void** context) {
  Context* found = nullptr;
  const int result = get_of_stream(stream, &Stream::context, current(), &found);
  if (context == nullptr) return invalid_value;
  *context = found;
  return result;
}

int wait_event(void* handle, void* event_handle) {
  Stream* const stream = g_streams.find(handle);
  const Event* const event = g_events.find(event_handle);
  if (event == nullptr || !is_stream(handle)) return invalid_handle;
  if (stream != nullptr && event->captured != nullptr) stream->captured = event->captured;
  return success;
}

int begin_capture(void* handle, void* graph) {
  Stream* const stream = g_streams.find(handle);
  if (stream == nullptr) return is_default(handle) ? capture_unsupported : invalid_handle;
  if (stream->captured != nullptr) return illegal_state;
  void* captured = graph;
  const int result = graph == nullptr ? create_graph(&captured) : success;
  stream->captured = find_graph(captured);
  stream->origin = true;
  return stream->captured == nullptr && result == success ? invalid_value : result;
}

int end_capture(void* handle, void** out) {
  Stream* const stream = g_streams.find(handle);
  if (stream == nullptr || !stream->origin) return illegal_state;
  Graph* const graph = stream->captured;
  g_streams.for_each([graph](Stream& other) {
    if (other.captured == graph) other.captured = nullptr;
  });
  g_events.for_each([graph](Event& event) {
    if (event.captured == graph) event.captured = nullptr;
  });
  stream->origin = false;
  if (out != nullptr) *out = graph;
  return success;
}

int capture_info(void* handle, int* status, unsigned long long* id, void** out) {
  constexpr int kNone = 0;
  constexpr int kActive = 1;
  if (!is_stream(handle)) return invalid_handle;
  if (status == nullptr) return invalid_value;
  Graph* const graph = captured_graph(handle);
  *status = graph == nullptr ? kNone : kActive;
  if (graph == nullptr) return success;
  if (id != nullptr) *id = graph_id(graph);
  if (out != nullptr) *out = graph;
  return success;
}

int create_event(void** out) {
  if (out == nullptr) return invalid_value;
  Event* const event = g_events.take();
  if (event == nullptr) return out_of_memory;
  event->context = current();
  *out = event;
  return success;
}

int destroy_event(void* handle) {
  Event* const event = g_events.find(handle);
  if (event == nullptr) return invalid_handle;
  g_events.give_back(event);
  return success;
}

int record_event(void* handle, void* stream) {
  Event* const event = g_events.find(handle);
  if (event == nullptr || !is_stream(stream)) return invalid_handle;
  event->captured = captured_graph(stream);
  return success;
}

int query_event(void* event) { return g_events.find(event) == nullptr ? invalid_handle : success; }

int synchronize_event(void* handle) {
  const Event* const event = g_events.find(handle);
  if (event == nullptr) return invalid_handle;
  if (event->captured != nullptr) return capture_unsupported;
  return synchronize_device();
}

int elapsed_time(float* milliseconds, void* start, void* end) {
  if (g_events.find(start) == nullptr || g_events.find(end) == nullptr) return invalid_handle;
  if (milliseconds == nullptr) return invalid_value;
  *milliseconds = 0;
  return success;
}

void end_streams_of(Context* context) {
  g_streams.for_each([context](Stream& stream) {
    if (stream.context == context) g_streams.give_back(&stream);
  });
  g_events.for_each([context](Event& event) {
    if (event.context == context) g_events.give_back(&event);
  });
}

}  // namespace fake_gpu
