#include "tests/fake_gpu/core/sharing.h"

#include <cstring>

#include "tests/fake_gpu/core/blocks.h"
#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/pools.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/shareable.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {
namespace {

struct External {
  Address pages;
  std::size_t bytes;
};

Table<External, 1024> g_externals;

int write_note(void* out, Address address, unsigned kinds) {
  const Block* const block = find_block(address, kinds);
  if (block == nullptr || out == nullptr) return invalid_value;
  Note note = {};
  note.shareable = {Shared::block, block->device, block->bytes, address};
  std::memcpy(out, &note, sizeof note);
  return success;
}

int open_note(Address* out, const void* in, Kind kind) {
  if (out == nullptr || in == nullptr) return invalid_value;
  Note note;
  std::memcpy(&note, in, sizeof note);
  if (note.shareable.of != Shared::block) return invalid_value;
  const Block* const block = new_block(kind, note.shareable.bytes, current()->device);
  if (block == nullptr) return out_of_memory;
  *out = block->address;
  return success;
}

}  // namespace

int ipc_handle(void* note, Address address) {
  return write_note(note, address, static_cast<unsigned>(Kind::device));
}

int open_ipc(Address* out, const void* note) { return open_note(out, note, Kind::ipc); }

int close_ipc(Address address) {
  Block* const block = find_block(address, static_cast<unsigned>(Kind::ipc));
  if (block == nullptr) return invalid_value;
  end_block(block);
  return success;
}

int export_pointer(void* note, Address address) {
  return write_note(note, address, static_cast<unsigned>(Kind::ordered));
}

int import_pointer(Address* out, void* pool, const void* note) {
  const Pool* const from = find_pool(pool);
  if (from == nullptr || !from->imported) return invalid_value;
  return open_note(out, note, Kind::imported);
}

int import_external(void** out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return invalid_value;
  const Address pages = take_pages(bytes, PROT_READ | PROT_WRITE);
  External* const external = pages == 0 ? nullptr : g_externals.take();
  if (external == nullptr) return out_of_memory;
  *external = {pages, bytes};
  *out = external;
  return success;
}

int external_buffer(Address* out, void* handle, std::size_t offset, std::size_t bytes) {
  const External* const external = g_externals.find(handle);
  if (external == nullptr) return invalid_handle;
  if (out == nullptr || bytes == 0 || offset > external->bytes) return invalid_value;
  if (bytes > external->bytes - offset) return invalid_value;
  const Address address = external->pages + offset;
  if (find_block(address, static_cast<unsigned>(Kind::external)) == nullptr &&
      new_block_at(Kind::external, address, bytes, current()->device) == nullptr)
    return out_of_memory;
  *out = address;
  return success;
}

bool is_external(void* handle) { return g_externals.find(handle) != nullptr; }

int destroy_external(void* handle) {
  External* const external = g_externals.find(handle);
  if (external == nullptr) return invalid_handle;
  end_blocks_between(external->pages, external->pages + external->bytes);
  give_back_pages(external->pages, external->bytes);
  g_externals.give_back(external);
  return success;
}

}  // namespace fake_gpu
