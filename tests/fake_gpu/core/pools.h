// Memory pools: the bytes reserved of the device, and the used part. Freed memory stays
// reserved until a synchronization or a trim, down to the release threshold.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/blocks.h"

namespace fake_gpu {

struct Pool {
  int device;  // kNoDevice: host memory
  bool own;    // created by the program, which may destroy it
  bool imported;
  bool ended;  // destroyed, with blocks left
  std::size_t used;
  std::size_t used_high;
  std::size_t reserved;
  std::size_t reserved_high;
  std::size_t threshold;
  std::size_t largest;  // 0: no bound of its own
  int reuse[3];         // attributes without effect, but stored
};

int create_pool(void** out, int device, std::size_t largest);
int import_pool(void** out, const void* handle);  // handle: as exported, or an int
int export_pool(void* out, void* pool);
int destroy_pool(void* pool);
int trim_pool(void* pool, std::size_t keep);
int get_pool_attribute(void* pool, int attribute, void* value);
int set_pool_attribute(void* pool, int attribute, const void* value);

int default_pool(void** out, int device);
int device_pool(void** out, int device);  // the one that AllocAsync uses
int set_device_pool(int device, void* pool);
Pool* graph_pool(int device);

// For the current context's device: releases the bytes above the threshold.
Pool* current_pool();
Pool* find_pool(void* pool);
void release_unused(int device);

bool take_from(Pool* pool, std::size_t bytes);
void give_to(Pool* pool, std::size_t bytes);

int get_graph_memory(int device, int attribute, unsigned long long* value);
int reset_graph_memory(int device, int attribute);
int trim_graph_memory(int device);

}  // namespace fake_gpu
