// Contexts: created ones and the primary one of each device; which is current is a matter of the
// thread. What was allocated in a context ends with it.
#pragma once

#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {

struct Context {
  int device;
  unsigned flags;
  bool primary;
  bool active;  // a primary context that nobody retains is there, but not active
  int retained;
  unsigned long long id;
};

Context* current();  // null: none
int check_current();

int create_context(void** out, unsigned flags, int device);  // and makes it current
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

// The HIP way: a thread has a current device, whose primary context is there when it is needed.
int thread_device();
int set_thread_device(int device);
int use_primary(int device);

}  // namespace fake_gpu
