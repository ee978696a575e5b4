#include "tests/fake_gpu/core/contexts.h"

#include "tests/fake_gpu/core/arrays.h"
#include "tests/fake_gpu/core/blocks.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/streams.h"

namespace fake_gpu {
namespace {

Table<Context, 1024> g_contexts;
Context* g_primary[kMaxDevices] = {};
unsigned long long g_last_id = 0;

constexpr int kDeepest = 64;
thread_local Context* t_stack[kDeepest];
thread_local int t_depth = 0;
thread_local int t_device = 0;

Context* new_context(int device, bool primary) {
  Context* const context = g_contexts.take();
  if (context != nullptr)
    *context = {.device = device,
                .flags = 0,
                .primary = primary,
                .active = !primary,
                .retained = 0,
                .id = ++g_last_id};
  return context;
}

Context* primary_of(int device) {
  if (g_primary[device] == nullptr) g_primary[device] = new_context(device, true);
  return g_primary[device];
}

void end_contents(Context* context) {
  end_blocks_of(context);
  end_arrays_of(context);
  end_streams_of(context);
}

}  // namespace

Context* current() { return t_depth == 0 ? nullptr : t_stack[t_depth - 1]; }

int check_current() {
  if (current() == nullptr) return invalid_context;
  const Context* const context = g_contexts.find(current());
  return context != nullptr && context->active ? success : context_is_destroyed;
}

int create_context(void** out, unsigned flags, int device) {
  if (out == nullptr) return invalid_value;
  if (!is_device(device)) return invalid_device;
  if (t_depth == kDeepest) return invalid_value;
  Context* const context = new_context(device, false);
  if (context == nullptr) return out_of_memory;
  context->flags = flags;
  *out = context;
  return push_current(context);
}

int destroy_context(void* handle) {
  Context* const context = g_contexts.find(handle);
  if (context == nullptr || context->primary) return invalid_context;
  end_contents(context);
  if (current() == context) --t_depth;
  g_contexts.give_back(context);
  return success;
}

int set_current(void* context) {
  if (context != nullptr && g_contexts.find(context) == nullptr) return invalid_context;
  if (t_depth > 0) --t_depth;
  return context == nullptr ? success : push_current(context);
}

int push_current(void* handle) {
  Context* const context = g_contexts.find(handle);
  if (context == nullptr) return invalid_context;
  if (t_depth == kDeepest) return invalid_value;
  t_stack[t_depth++] = context;
  return success;
}

int pop_current(void** out) {
  if (t_depth == 0) return invalid_context;
  --t_depth;
  if (out != nullptr) *out = t_stack[t_depth];
  return success;
}

int get_current(void** out) {
  if (out == nullptr) return invalid_value;
  *out = current();
  return success;
}

int current_device(int* out) { return context_device(out, current()); }

int context_device(int* out, void* handle) {
  if (out == nullptr) return invalid_value;
  const Context* const context = g_contexts.find(handle == nullptr ? current() : handle);
  if (context == nullptr) return invalid_context;
  *out = context->device;
  return success;
}

int context_flags(unsigned* out) {
  if (out == nullptr) return invalid_value;
  *out = current()->flags;
  return success;
}

int context_id(void* handle, unsigned long long* out) {
  const Context* const context = g_contexts.find(handle == nullptr ? current() : handle);
  if (context == nullptr) return invalid_context;
  if (out == nullptr) return invalid_value;
  *out = context->id;
  return success;
}

int retain_primary(void** out, int device) {
  if (out == nullptr) return invalid_value;
  if (!is_device(device)) return invalid_device;
  Context* const context = primary_of(device);
  if (context == nullptr) return out_of_memory;
  context->active = true;
  ++context->retained;
  *out = context;
  return success;
}

int release_primary(int device) {
  if (!is_device(device)) return invalid_device;
  Context* const context = primary_of(device);
  if (context->retained == 0) return invalid_context;
  return --context->retained == 0 ? reset_primary(device) : success;
}

int reset_primary(int device) {
  if (!is_device(device)) return invalid_device;
  Context* const context = primary_of(device);
  end_contents(context);
  end_ordered_blocks(device);
  context->active = false;
  context->retained = 0;
  return success;
}

int primary_state(int device, unsigned* flags, int* active) {
  if (!is_device(device)) return invalid_device;
  if (flags == nullptr || active == nullptr) return invalid_value;
  *flags = primary_of(device)->flags;
  *active = primary_of(device)->active;
  return success;
}

int set_primary_flags(int device, unsigned flags) {
  if (!is_device(device)) return invalid_device;
  primary_of(device)->flags = flags;
  return success;
}

int thread_device() { return t_device; }

int set_thread_device(int device) {
  if (!is_device(device)) return invalid_device;
  t_device = device;
  return success;
}

int use_primary(int device) {
  if (!is_device(device)) return invalid_device;
  Context* const context = primary_of(device);
  context->active = true;
  if (current() == context) return success;
  return set_current(context);
}

}  // namespace fake_gpu
