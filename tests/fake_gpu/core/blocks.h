// Everything with an address: device, managed and host memory, blocks of pools and graphs, mappings
// and reservations. A block has its device and context, so that its free counts there, on any
// thread.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/raw_memory.h"

namespace fake_gpu {

struct Context;
struct Handle;
struct Pool;

enum class Kind : unsigned {
  device = 1,
  managed = 2,
  host = 4,
  ordered = 8,  // of a pool
  graph = 16,   // of a graph's node: live once launched
  ipc = 32,
  imported = 64,   // of another process's pool
  external = 128,  // a part of external memory
  reservation = 256,
  mapping = 512,
  registered = 1024,  // the program's own host memory
};

constexpr unsigned operator|(Kind a, Kind b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, Kind b) { return a | static_cast<unsigned>(b); }

struct Block {
  Address address;
  std::size_t bytes;
  Kind kind;
  int device;  // kNoDevice: host memory
  Context* context;
  Pool* pool;      // ordered, graph
  Handle* handle;  // mapping
  bool live;       // graph: launched and not yet freed
  bool owned;      // graph: the graph still needs the address
  unsigned flags;  // host, registered: the caller's flags
  Block* next;     // in the same bucket
};

// The block that begins at the address; the block that contains it. kinds: a set of Kind; null:
// none.
Block* find_block(Address address, unsigned kinds);
Block* find_around(Address address, unsigned kinds);

// A block with new pages (without pages if an address is given); null: no memory.
Block* new_block(Kind kind, std::size_t bytes, int device, Where where = Where::anywhere);
Block* new_block_at(Kind kind, Address address, std::size_t bytes, int device);
void end_block(Block* block);  // releases pages, device memory and its part of a pool

int allocate(Address* out, std::size_t bytes, Where where = Where::anywhere);
int allocate_pitch(Address* out, std::size_t* pitch, std::size_t width, std::size_t rows,
                   Where where = Where::anywhere);
int allocate_managed(Address* out, std::size_t bytes);
int allocate_host(void** out, std::size_t bytes, unsigned flags);
int allocate_ordered(Address* out, std::size_t bytes, void* pool, void* stream);  // pool 0: default
int free_block(Address address);  // anything that cuMemFree or hipFree accept, including 0
int free_ordered(Address address, void* stream);
int free_host(void* address);
int register_host(void* address, std::size_t bytes, unsigned flags);
int unregister_host(void* address);
int host_device_pointer(Address* out, void* address);
int host_flags(unsigned* out, void* address);

int memory_info(std::size_t* free, std::size_t* total);
int address_range(Address* base, std::size_t* bytes, Address address);

void end_blocks_of(Context* context);
void end_blocks_between(Address begin, Address end);  // parts of external memory
void end_ordered_blocks(int device);

}  // namespace fake_gpu
