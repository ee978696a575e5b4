// Arrays and mipmapped arrays: sizes without contents.
#pragma once

#include <cstddef>

namespace fake_gpu {

struct Context;

// The front end's description, kept for later queries.
struct ArrayShape {
  std::size_t width;
  std::size_t height;
  std::size_t depth;
  int format;
  unsigned channels;
  unsigned flags;
};

int create_array(void** out, std::size_t bytes, const ArrayShape& shape);
int create_mipmapped(void** out, std::size_t bytes, const ArrayShape& shape, unsigned levels);
int view_mipmapped(void** out, const ArrayShape& shape, unsigned levels);  // of imported memory
int array_level(void** out, void* mipmapped, unsigned level);              // ends with the mipmap
int array_shape(ArrayShape* out, void* array);
int destroy_array(void* array);
int destroy_mipmapped(void* mipmapped);
bool is_array(void* array);  // or mipmapped

void end_arrays_of(Context* context);

}  // namespace fake_gpu
