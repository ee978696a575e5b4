// Virtual memory: physical handles, reserved address space, and mappings of handles into it. A
// handle's memory is freed once it is released as often as it was retained and no longer
// mapped.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/raw_memory.h"

namespace fake_gpu {

inline constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Handle {
  std::size_t bytes = 0;
  int device = 0;  // kNoDevice: host memory
  bool charged = false;
  bool multicast = false;
  unsigned references = 0;  // of the program
  unsigned mappings = 0;
  int handle_types = 0;  // as given
};

int create_handle(Handle** out, std::size_t bytes, int device, int handle_types);
int create_multicast(Handle** out, std::size_t bytes);
int bind(void* multicast, std::size_t offset, std::size_t bytes, const Handle* memory);
int unbind(void* multicast, std::size_t offset, std::size_t bytes);
int release_handle(void* handle);
int retain_handle(Handle** out, Address mapped);
int export_handle(void* out, void* handle);
int import_handle(Handle** out, const void* shared);
Handle* find_handle(void* handle);
Handle* mapped_handle(Address address);  // null: nothing is mapped there

int reserve(Address* out, std::size_t bytes);
int end_reservation(Address address, std::size_t bytes);
int map(Address address, std::size_t bytes, std::size_t offset, void* handle);
int set_access(Address address, std::size_t bytes);
int unmap(Address address, std::size_t bytes);

// Maps or unmaps the memory of a tile of a sparse array. tile: identifies the tile.
struct Tile {
  const void* array;
  unsigned char part[40];
};
int map_tile(const Tile& tile, void* handle);
int unmap_tile(const Tile& tile);
void unmap_tiles_of(const void* array);

}  // namespace fake_gpu
