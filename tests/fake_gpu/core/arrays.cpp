#include "tests/fake_gpu/core/arrays.h"

#include <algorithm>

#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/table.h"
#include "tests/fake_gpu/core/virtual_memory.h"

namespace fake_gpu {
namespace {

constexpr unsigned kSparse = 0x40;  // CUDA_ARRAY3D_SPARSE: memory comes by cuMemMapArrayAsync

struct Array {
  Context* context;
  Array* whole;     // for a level: its mipmap
  unsigned levels;  // for a mipmap; 0: an array
  int device;
  std::size_t charged;
  ArrayShape shape;
};

Table<Array, 1 << 14> g_arrays;

void end(Array* array) {
  g_arrays.for_each([array](Array& level) {
    if (level.whole == array) g_arrays.give_back(&level);
  });
  unmap_tiles_of(array);
  discharge(array->device, array->charged);
  g_arrays.give_back(array);
}

std::size_t own_bytes(std::size_t bytes, const ArrayShape& shape) {
  return (shape.flags & kSparse) != 0 ? 0 : bytes;
}

int create(void** out, std::size_t charged, const ArrayShape& shape, unsigned levels) {
  if (out == nullptr || shape.width == 0) return invalid_value;
  const int device = current()->device;
  if (!charge(device, charged)) return out_of_memory;
  Array* const array = g_arrays.take();
  if (array == nullptr) {
    discharge(device, charged);
    return out_of_memory;
  }
  *array = {current(), nullptr, levels, device, charged, shape};
  *out = array;
  return success;
}

}  // namespace

int create_array(void** out, std::size_t bytes, const ArrayShape& shape) {
  return create(out, own_bytes(bytes, shape), shape, 0);
}

int create_mipmapped(void** out, std::size_t bytes, const ArrayShape& shape, unsigned levels) {
  return levels == 0 ? invalid_value : create(out, own_bytes(bytes, shape), shape, levels);
}

int view_mipmapped(void** out, const ArrayShape& shape, unsigned levels) {
  return levels == 0 ? invalid_value : create(out, 0, shape, levels);
}

int array_level(void** out, void* handle, unsigned level) {
  Array* const mipmapped = g_arrays.find(handle);
  if (mipmapped == nullptr || out == nullptr || level >= mipmapped->levels) return invalid_value;
  Array* const array = g_arrays.take();
  if (array == nullptr) return out_of_memory;
  *array = {mipmapped->context, mipmapped, 0, mipmapped->device, 0, mipmapped->shape};
  for (std::size_t* side : {&array->shape.width, &array->shape.height, &array->shape.depth})
    if (*side != 0) *side = std::max(*side >> level, std::size_t{1});
  *out = array;
  return success;
}

int array_shape(ArrayShape* out, void* handle) {
  const Array* const array = g_arrays.find(handle);
  if (array == nullptr) return invalid_handle;
  *out = array->shape;
  return success;
}

int destroy_array(void* handle) {
  Array* const array = g_arrays.find(handle);
  if (array == nullptr || array->whole != nullptr || array->levels != 0) return invalid_handle;
  end(array);
  return success;
}

int destroy_mipmapped(void* handle) {
  Array* const array = g_arrays.find(handle);
  if (array == nullptr || array->levels == 0) return invalid_handle;
  end(array);
  return success;
}

bool is_array(void* array) { return g_arrays.find(array) != nullptr; }

void end_arrays_of(Context* context) {
  g_arrays.for_each([context](Array& array) {
    if (array.context == context && array.whole == nullptr) end(&array);
  });
}

}  // namespace fake_gpu
