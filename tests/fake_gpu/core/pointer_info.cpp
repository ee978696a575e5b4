#include "tests/fake_gpu/core/pointer_info.h"

#include <cstring>

#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"

namespace fake_gpu {
namespace {

enum Attribute {
  of_context = 1,
  memory_type = 2,
  device_pointer = 3,
  host_pointer = 4,
  buffer_id = 7,
  is_managed = 8,
  device_ordinal = 9,
  range_start = 11,
  range_bytes = 12,
  is_mapped = 13,
  of_pool = 17,
};

template <class T>
int put(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return success;
}

}  // namespace

const Block* block_at(Address address) {
  return find_around(address, ~static_cast<unsigned>(Kind::reservation));
}

int pointer_attribute(void* data, int attribute, Address address) {
  constexpr unsigned kHost = 1;
  constexpr unsigned kDevice = 2;
  const Block* const block = block_at(address);
  if (block == nullptr || data == nullptr) return invalid_value;
  const bool of_host = block->device == kNoDevice;
  switch (attribute) {
    case of_context:
      return put(data, static_cast<const void*>(block->context));
    case memory_type:
      return put(data, of_host ? kHost : kDevice);
    case device_pointer:
      return put(data, address);
    case host_pointer:
      return of_host ? put(data, address) : invalid_value;
    case buffer_id:
      return put(data, block->address);
    case is_managed:
      return put(data, static_cast<int>(block->kind == Kind::managed));
    case device_ordinal:
      return put(data, block->device);
    case range_start:
      return put(data, block->address);
    case range_bytes:
      return put(data, block->bytes);
    case is_mapped:
      return put(data, 1);
    case of_pool:
      return put(data, static_cast<const void*>(block->pool));
  }
  return invalid_value;
}

int pointer_attributes(unsigned count, const int* attributes, void** data, Address address) {
  if (attributes == nullptr || data == nullptr) return invalid_value;
  for (unsigned i = 0; i < count; ++i)  // as documented: success, with null for missing ones
    if (pointer_attribute(data[i], attributes[i], address) != success && data[i] != nullptr)
      std::memset(data[i], 0, sizeof(int));
  return success;
}

}  // namespace fake_gpu
