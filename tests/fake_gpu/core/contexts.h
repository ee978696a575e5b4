// Contexts: created ones and the primary one of each device. Each thread has a current one. Memory
// of a context is freed with it.
#pragma once

#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {

struct Context {
  int device;
  unsigned flags;
  bool primary;
  bool active;  // a primary context without users exists, but is not active
  int retained;
  unsigned long long id;
};

Context* current();  // null: none
int check_current();

int create_context(void** out, unsigned flags, int device);  // also makes it current
int destroy_context(void* context);
int set_current(void* context);  // null: none
int push_current(void* context);
int pop_current(void** out);
int get_current(void** out);
int current_device(int* out);
int context_device(int* out, void* context);
int context_flags(unsigned* out);
int context_id(void* context, unsigned long long* out);

int retain_primary(void** out, int device);
int release_primary(int device);
int reset_primary(int device);
int primary_state(int device, unsigned* flags, int* active);
int set_primary_flags(int device, unsigned flags);

// As in HIP: a thread has a current device, with its primary context created on demand.
int thread_device();
int set_thread_device(int device);
int use_primary(int device);

}  // namespace fake_gpu
