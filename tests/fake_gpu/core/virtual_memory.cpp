#include "tests/fake_gpu/core/virtual_memory.h"

#include <cstring>

#include "tests/fake_gpu/core/blocks.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/shareable.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {
namespace {

Table<Handle, 1 << 16> g_handles;

constexpr auto kReservation = static_cast<unsigned>(Kind::reservation);
constexpr auto kMapping = static_cast<unsigned>(Kind::mapping);

bool is_granular(std::size_t bytes) { return bytes != 0 && bytes % kGranularity == 0; }

int new_handle(Handle** out, const Handle& handle) {
  if (out == nullptr) return invalid_value;
  Handle* const created = g_handles.take();
  if (created == nullptr) return out_of_memory;
  *created = handle;
  created->references = 1;
  *out = created;
  return success;
}

void sweep(Handle* handle) {
  if (handle->references != 0 || handle->mappings != 0) return;
  if (handle->charged) discharge(handle->device, handle->bytes);
  g_handles.give_back(handle);
}

// Visits the mappings of [address, address + bytes). false: the range does not consist of whole
// ones.
template <class Action>
bool for_mappings(Address address, std::size_t bytes, Action action) {
  const Address end = address + bytes;
  while (address < end) {
    Block* const mapping = find_block(address, kMapping);
    if (mapping == nullptr || mapping->bytes > end - address) return false;
    address += mapping->bytes;
    action(mapping);
  }
  return bytes != 0;
}

struct MappedTile {
  Tile tile;
  Handle* handle;
};

Table<MappedTile, 4096> g_tiles;

void end_tile(MappedTile& mapped) {
  --mapped.handle->mappings;
  sweep(mapped.handle);
  g_tiles.give_back(&mapped);
}

}  // namespace

Handle* find_handle(void* handle) {
  Handle* const found = g_handles.find(handle);
  return found == nullptr || found->references == 0 ? nullptr : found;
}

int create_handle(Handle** out, std::size_t bytes, int device, int handle_types) {
  if (out == nullptr || !is_granular(bytes)) return invalid_value;
  if (device != kNoDevice && !is_device(device)) return invalid_device;
  if (!charge(device, bytes)) return out_of_memory;
  const int result = new_handle(
      out, {.bytes = bytes, .device = device, .charged = true, .handle_types = handle_types});
  if (result != success) discharge(device, bytes);
  return result;
}

int create_multicast(Handle** out, std::size_t bytes) {
  if (!is_granular(bytes)) return invalid_value;
  return new_handle(out, {.bytes = bytes, .device = kNoDevice, .multicast = true});
}

int bind(void* multicast, std::size_t offset, std::size_t bytes, const Handle* memory) {
  if (memory == nullptr || memory->multicast || bytes > memory->bytes) return invalid_value;
  return unbind(multicast, offset, bytes);
}

int unbind(void* multicast, std::size_t offset, std::size_t bytes) {
  const Handle* const object = find_handle(multicast);
  if (object == nullptr || !object->multicast) return invalid_value;
  return offset <= object->bytes && bytes <= object->bytes - offset ? success : invalid_value;
}

int release_handle(void* given) {
  Handle* const handle = find_handle(given);
  if (handle == nullptr) return invalid_value;
  --handle->references;
  sweep(handle);
  return success;
}

Handle* mapped_handle(Address address) {
  const Block* const mapping = find_around(address, kMapping);
  return mapping == nullptr ? nullptr : mapping->handle;
}

int retain_handle(Handle** out, Address mapped) {
  Handle* const handle = mapped_handle(mapped);
  if (handle == nullptr || out == nullptr) return invalid_value;
  ++handle->references;
  *out = handle;
  return success;
}

int export_handle(void* out, void* given) {
  const Handle* const handle = find_handle(given);
  if (handle == nullptr || out == nullptr) return invalid_value;
  const Shared of = handle->multicast ? Shared::multicast : Shared::handle;
  return export_shareable(out, {of, handle->device, handle->bytes, 0});
}

int import_handle(Handle** out, const void* shared) {
  Shareable note = {};
  if (!import_shareable(shared, &note)) return invalid_value;
  if (note.of != Shared::handle && note.of != Shared::multicast) return invalid_value;
  return new_handle(
      out, {.bytes = note.bytes, .device = note.device, .multicast = note.of == Shared::multicast});
}

int reserve(Address* out, std::size_t bytes) {
  if (out == nullptr || !is_granular(bytes)) return invalid_value;
  const Block* const block = new_block(Kind::reservation, bytes, kNoDevice);
  if (block == nullptr) return out_of_memory;
  *out = block->address;
  return success;
}

int end_reservation(Address address, std::size_t bytes) {
  Block* const block = find_block(address, kReservation);
  if (block == nullptr || block->bytes != bytes) return invalid_value;
  end_block(block);
  return success;
}

int map(Address address, std::size_t bytes, std::size_t offset, void* given) {
  Handle* const handle = find_handle(given);
  const Block* const space = find_around(address, kReservation);
  if (handle == nullptr || space == nullptr || !is_granular(bytes)) return invalid_value;
  if (offset != 0 || bytes > handle->bytes) return invalid_value;
  if (address + bytes > space->address + space->bytes) return invalid_value;
  if (find_block(address, kMapping) != nullptr) return invalid_value;
  Block* const mapping = new_block_at(Kind::mapping, address, bytes, handle->device);
  if (mapping == nullptr) return out_of_memory;
  mapping->handle = handle;
  ++handle->mappings;
  return success;
}

int set_access(Address address, std::size_t bytes) {
  if (!for_mappings(address, bytes, [](const Block*) {})) return invalid_value;
  open_pages(address, bytes);
  return success;
}

int unmap(Address address, std::size_t bytes) {
  if (!for_mappings(address, bytes, [](const Block*) {})) return invalid_value;
  for_mappings(address, bytes, [](Block* mapping) {
    Handle* const handle = mapping->handle;
    end_block(mapping);
    --handle->mappings;
    sweep(handle);
  });
  close_pages(address, bytes);
  return success;
}

int map_tile(const Tile& tile, void* given) {
  Handle* const handle = find_handle(given);
  if (handle == nullptr) return invalid_value;
  MappedTile* const mapped = g_tiles.take();
  if (mapped == nullptr) return out_of_memory;
  *mapped = {tile, handle};
  ++handle->mappings;
  return success;
}

int unmap_tile(const Tile& tile) {
  int result = invalid_value;
  g_tiles.for_each([&](MappedTile& mapped) {
    if (mapped.tile.array != tile.array ||
        std::memcmp(mapped.tile.part, tile.part, sizeof tile.part) != 0)
      return;
    end_tile(mapped);
    result = success;
  });
  return result;
}

void unmap_tiles_of(const void* array) {
  g_tiles.for_each([array](MappedTile& mapped) {
    if (mapped.tile.array == array) end_tile(mapped);
  });
}

}  // namespace fake_gpu
