// Handles of memory across processes: a file descriptor with a note about the memory. Imports have
// the right size and device, but not the exporter's contents.
#pragma once

#include <cstddef>

namespace fake_gpu {

enum class Shared : int { nothing, pool, handle, multicast, block };

struct Shareable {
  Shared of;
  int device;
  std::size_t bytes;
  unsigned long long address;
};

// Writes a new descriptor (an int) to out; a result.
int export_shareable(void* out, const Shareable& shareable);

// handle: the descriptor itself, carried in a pointer, as both vendors have it.
bool import_shareable(const void* handle, Shareable* shareable);

// Handles of 64 bytes that hold the note themselves (IPC, pointers of pools).
struct Note {
  Shareable shareable;
  unsigned char rest[64 - sizeof(Shareable)];
};
static_assert(sizeof(Note) == 64);

}  // namespace fake_gpu
