#include "tests/fake_gpu/core/blocks.h"

#include "tests/fake_gpu/core/contexts.h"
#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/graphs.h"
#include "tests/fake_gpu/core/pools.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/streams.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {
namespace {

Table<Block, 1 << 17, Reuse::soon> g_blocks;

constexpr unsigned kBuckets = 1 << 16;
Block* g_buckets[kBuckets];

Block*& bucket_of(Address address) {
  return g_buckets[(address >> 12) * 0x9e3779b97f4a7c15u >> 48];
}

bool is_one_of(Kind kind, unsigned kinds) { return (static_cast<unsigned>(kind) & kinds) != 0; }

bool has_own_pages(Kind kind) {
  return !is_one_of(kind, Kind::registered | Kind::mapping | Kind::external);
}

bool is_charged(Kind kind) { return kind == Kind::device; }

}  // namespace

Block* find_block(Address address, unsigned kinds) {
  for (Block* block = bucket_of(address); block != nullptr; block = block->next)
    if (block->address == address && is_one_of(block->kind, kinds)) return block;
  return nullptr;
}

Block* find_around(Address address, unsigned kinds) {
  Block* found = find_block(address, kinds);
  if (found != nullptr) return found;
  g_blocks.for_each([&](Block& block) {
    if (is_one_of(block.kind, kinds) && address - block.address < block.bytes) found = &block;
  });
  return found;
}

Block* new_block_at(Kind kind, Address address, std::size_t bytes, int device) {
  Block* const block = g_blocks.take();
  if (block == nullptr) return nullptr;
  block->address = address;
  block->bytes = bytes;
  block->kind = kind;
  block->device = device;
  block->context = current();
  block->next = bucket_of(address);
  bucket_of(address) = block;
  return block;
}

Block* new_block(Kind kind, std::size_t bytes, int device, Where where) {
  const int protection = kind == Kind::reservation ? PROT_NONE : PROT_READ | PROT_WRITE;
  const Address address = take_pages(bytes, protection, where);
  if (address == 0) return nullptr;
  Block* const block = new_block_at(kind, address, bytes, device);
  if (block == nullptr) give_back_pages(address, bytes);
  return block;
}

void end_block(Block* block) {
  if (has_own_pages(block->kind)) give_back_pages(block->address, block->bytes);
  if (is_charged(block->kind)) discharge(block->device, block->bytes);
  if (block->pool != nullptr && block->live) give_to(block->pool, block->bytes);
  Block** link = &bucket_of(block->address);
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  g_blocks.give_back(block);
}

int allocate(Address* out, std::size_t bytes, Where where) {
  if (out == nullptr || bytes == 0) return invalid_value;
  const int device = current()->device;
  if (!charge(device, bytes)) return out_of_memory;
  Block* const block = new_block(Kind::device, bytes, device, where);
  if (block == nullptr) {
    discharge(device, bytes);
    return out_of_memory;
  }
  *out = block->address;
  return success;
}

int allocate_pitch(Address* out, std::size_t* pitch, std::size_t width, std::size_t rows,
                   Where where) {
  constexpr std::size_t kPitch = 512;  // pitches are multiples, as on current devices
  if (pitch == nullptr || width == 0 || rows == 0) return invalid_value;
  const std::size_t row = (width + kPitch - 1) / kPitch * kPitch;
  const int result = allocate(out, row * rows, where);
  if (result == success) *pitch = row;
  return result;
}

int allocate_managed(Address* out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return invalid_value;
  const Block* const block = new_block(Kind::managed, bytes, current()->device);
  if (block == nullptr) return out_of_memory;
  *out = block->address;
  return success;
}

int allocate_host(void** out, std::size_t bytes, unsigned flags) {
  if (out == nullptr || bytes == 0) return invalid_value;
  Block* const block = new_block(Kind::host, bytes, kNoDevice);
  if (block == nullptr) return out_of_memory;
  block->flags = flags;
  *out = reinterpret_cast<void*>(block->address);
  return success;
}

int allocate_ordered(Address* out, std::size_t bytes, void* pool_handle, void* stream) {
  Pool* const pool = pool_handle == nullptr ? current_pool() : find_pool(pool_handle);
  if (pool == nullptr || out == nullptr || bytes == 0) return invalid_value;
  if (!is_stream(stream)) return invalid_handle;
  if (Graph* const graph = captured_graph(stream))
    return add_allocation(graph, out, bytes, pool->device);
  if (!take_from(pool, bytes)) return out_of_memory;
  Block* const block = new_block(Kind::ordered, bytes, pool->device);
  if (block == nullptr) {
    give_to(pool, bytes);
    return out_of_memory;
  }
  block->pool = pool;
  block->live = true;
  *out = block->address;
  return success;
}

int free_block(Address address) {
  if (address == 0) return success;
  Block* const block = find_block(address, Kind::device | Kind::managed | Kind::ordered |
                                               Kind::graph | Kind::imported | Kind::external);
  if (block == nullptr) return invalid_value;
  if (block->kind == Kind::graph) return free_launched(block);
  end_block(block);
  return success;
}

int free_ordered(Address address, void* stream) {
  if (!is_stream(stream)) return invalid_handle;
  if (Graph* const graph = captured_graph(stream)) return add_free(graph, address);
  return free_block(address);
}

int free_host(void* address) {
  if (address == nullptr) return success;
  Block* const block =
      find_block(reinterpret_cast<Address>(address), static_cast<unsigned>(Kind::host));
  if (block == nullptr) return invalid_value;
  end_block(block);
  return success;
}

int register_host(void* start, std::size_t bytes, unsigned flags) {
  const auto address = reinterpret_cast<Address>(start);
  if (address == 0 || bytes == 0) return invalid_value;
  if (find_block(address, Kind::host | Kind::registered) != nullptr) return already_registered;
  Block* const block = new_block_at(Kind::registered, address, bytes, kNoDevice);
  if (block == nullptr) return out_of_memory;
  block->flags = flags;
  return success;
}

int unregister_host(void* address) {
  Block* const block =
      find_block(reinterpret_cast<Address>(address), static_cast<unsigned>(Kind::registered));
  if (block == nullptr) return not_registered;
  end_block(block);
  return success;
}

int host_device_pointer(Address* out, void* start) {
  const auto address = reinterpret_cast<Address>(start);
  if (out == nullptr || find_around(address, Kind::host | Kind::registered) == nullptr)
    return invalid_value;
  *out = address;
  return success;
}

int host_flags(unsigned* out, void* start) {
  const Block* const block =
      find_around(reinterpret_cast<Address>(start), Kind::host | Kind::registered);
  if (out == nullptr || block == nullptr) return invalid_value;
  *out = block->flags;
  return success;
}

int memory_info(std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) return invalid_value;
  *free = free_bytes(current()->device);
  *total = capacity(current()->device);
  return success;
}

int address_range(Address* base, std::size_t* bytes, Address address) {
  const Block* const block = find_around(address, ~static_cast<unsigned>(Kind::reservation));
  if (block == nullptr) return invalid_value;
  if (base != nullptr) *base = block->address;
  if (bytes != nullptr) *bytes = block->bytes;
  return success;
}

void end_blocks_of(Context* context) {
  g_blocks.for_each([context](Block& block) {
    if (block.context == context &&
        is_one_of(block.kind,
                  Kind::device | Kind::managed | Kind::host | Kind::ipc | Kind::registered))
      end_block(&block);
  });
}

void end_blocks_between(Address begin, Address end) {
  g_blocks.for_each([=](Block& block) {
    if (block.kind == Kind::external && block.address >= begin && block.address < end)
      end_block(&block);
  });
}

void end_ordered_blocks(int device) {
  g_blocks.for_each([device](Block& block) {
    if (block.device == device && is_one_of(block.kind, Kind::ordered | Kind::imported))
      end_block(&block);
  });
}

}  // namespace fake_gpu
