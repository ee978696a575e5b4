#include "tests/fake_gpu/core/pools.h"

#include <algorithm>
#include <cstring>

#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/shareable.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {
namespace {

// Numbered alike by CU_MEMPOOL_ATTR_* and hipMemPoolAttr*.
enum Attribute {
  reuse_first = 1,
  reuse_last = 3,
  release_threshold = 4,
  reserved_current = 5,
  reserved_high = 6,
  used_current = 7,
  used_high = 8,
};

Table<Pool, 1024> g_pools;
Pool* g_default[kMaxDevices] = {};
Pool* g_chosen[kMaxDevices] = {};
Pool* g_graph[kMaxDevices] = {};
Pool* g_host = nullptr;

Pool* new_pool(int device) {
  Pool* const pool = g_pools.take();
  if (pool != nullptr) pool->device = device;
  return pool;
}

Pool* default_of(int device) {
  Pool*& pool = device == kNoDevice ? g_host : g_default[device];
  if (pool == nullptr) pool = new_pool(device);
  return pool;
}

void shrink(Pool* pool, std::size_t keep) {
  const std::size_t stays = std::min(pool->reserved, std::max(pool->used, keep));
  discharge(pool->device, pool->reserved - stays);
  pool->reserved = stays;
}

int put(void* out, std::size_t value) {
  const unsigned long long number = value;
  std::memcpy(out, &number, sizeof number);
  return success;
}

}  // namespace

Pool* find_pool(void* handle) {
  Pool* const pool = g_pools.find(handle);
  return pool == nullptr || pool->ended ? nullptr : pool;
}

int create_pool(void** out, int device, std::size_t largest) {
  if (out == nullptr) return invalid_value;
  if (device != kNoDevice && !is_device(device)) return invalid_device;
  Pool* const pool = new_pool(device);
  if (pool == nullptr) return out_of_memory;
  pool->own = true;
  pool->largest = largest;
  *out = pool;
  return success;
}

int export_pool(void* out, void* handle) {
  const Pool* const pool = find_pool(handle);
  if (pool == nullptr || out == nullptr) return invalid_value;
  return export_shareable(out, {Shared::pool, pool->device, 0, 0});
}

int import_pool(void** out, const void* handle) {
  Shareable shared = {};
  if (out == nullptr || !import_shareable(handle, &shared) || shared.of != Shared::pool)
    return invalid_value;
  const int result = create_pool(out, shared.device, 0);
  if (result == success) find_pool(*out)->imported = true;
  return result;
}

int destroy_pool(void* handle) {
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || !pool->own) return invalid_value;
  for (Pool*& chosen : g_chosen)
    if (chosen == pool) chosen = nullptr;
  pool->ended = true;
  give_to(pool, 0);
  return success;
}

int trim_pool(void* handle, std::size_t keep) {
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return invalid_value;
  shrink(pool, keep);
  return success;
}

int get_pool_attribute(void* handle, int attribute, void* value) {
  const Pool* const pool = find_pool(handle);
  if (pool == nullptr || value == nullptr) return invalid_value;
  if (attribute >= reuse_first && attribute <= reuse_last) {
    std::memcpy(value, &pool->reuse[attribute - reuse_first], sizeof(int));
    return success;
  }
  switch (attribute) {
    case release_threshold:
      return put(value, pool->threshold);
    case reserved_current:
      return put(value, pool->reserved);
    case reserved_high:
      return put(value, pool->reserved_high);
    case used_current:
      return put(value, pool->used);
    case used_high:
      return put(value, pool->used_high);
  }
  return invalid_value;
}

int set_pool_attribute(void* handle, int attribute, const void* value) {
  Pool* const pool = find_pool(handle);
  if (pool == nullptr || value == nullptr) return invalid_value;
  if (attribute >= reuse_first && attribute <= reuse_last) {
    std::memcpy(&pool->reuse[attribute - reuse_first], value, sizeof(int));
    return success;
  }
  switch (attribute) {
    case release_threshold:
      std::memcpy(&pool->threshold, value, sizeof pool->threshold);
      break;
    case reserved_high:
      pool->reserved_high = pool->reserved;
      break;
    case used_high:
      pool->used_high = pool->used;
      break;
    default:
      return invalid_value;
  }
  return success;
}

int default_pool(void** out, int device) {
  if (out == nullptr) return invalid_value;
  if (device != kNoDevice && !is_device(device)) return invalid_device;
  *out = default_of(device);
  return success;
}

int device_pool(void** out, int device) {
  const int result = default_pool(out, device);
  if (result == success && device != kNoDevice && g_chosen[device] != nullptr)
    *out = g_chosen[device];
  return result;
}

int set_device_pool(int device, void* handle) {
  Pool* const pool = find_pool(handle);
  if (!is_device(device)) return invalid_device;
  if (pool == nullptr || pool->device != device) return invalid_value;
  g_chosen[device] = pool;
  return success;
}

Pool* graph_pool(int device) {
  if (g_graph[device] == nullptr) g_graph[device] = new_pool(device);
  return g_graph[device];
}

Pool* current_pool() {
  void* pool = nullptr;
  device_pool(&pool, current()->device);
  return static_cast<Pool*>(pool);
}

void release_unused(int device) {
  g_pools.for_each([device](Pool& pool) {
    if (pool.device == device && &pool != g_graph[device]) shrink(&pool, pool.threshold);
  });
}

bool take_from(Pool* pool, std::size_t bytes) {
  const std::size_t wanted = pool->used + bytes;
  if (pool->largest != 0 && wanted > pool->largest) return false;
  if (wanted > pool->reserved) {
    if (!charge(pool->device, wanted - pool->reserved)) return false;
    pool->reserved = wanted;
    pool->reserved_high = std::max(pool->reserved_high, wanted);
  }
  pool->used = wanted;
  pool->used_high = std::max(pool->used_high, wanted);
  return true;
}

void give_to(Pool* pool, std::size_t bytes) {
  pool->used -= bytes;
  if (!pool->ended) return;
  shrink(pool, 0);
  if (pool->used == 0) g_pools.give_back(pool);
}

// CU_GRAPH_MEM_ATTR_*: used now, used at most, reserved now, reserved at most.
int get_graph_memory(int device, int attribute, unsigned long long* value) {
  if (!is_device(device)) return invalid_device;
  const Pool* const pool = graph_pool(device);
  const std::size_t figures[] = {pool->used, pool->used_high, pool->reserved, pool->reserved_high};
  if (value == nullptr || attribute < 0 || attribute > 3) return invalid_value;
  *value = figures[attribute];
  return success;
}

int reset_graph_memory(int device, int attribute) {
  if (!is_device(device)) return invalid_device;
  Pool* const pool = graph_pool(device);
  if (attribute != 1 && attribute != 3) return invalid_value;
  (attribute == 1 ? pool->used_high : pool->reserved_high) =
      attribute == 1 ? pool->used : pool->reserved;
  return success;
}

int trim_graph_memory(int device) {
  if (!is_device(device)) return invalid_device;
  shrink(graph_pool(device), 0);
  return success;
}

}  // namespace fake_gpu
