// Imported memory: blocks of another process (IPC, pool pointers) or of another interface (external
// memory). It has an address and a size, but counts on no device.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/raw_memory.h"

namespace fake_gpu {

// note: 64 bytes of the program.
int ipc_handle(void* note, Address address);
int open_ipc(Address* out, const void* note);
int close_ipc(Address address);

int export_pointer(void* note, Address address);
int import_pointer(Address* out, void* pool, const void* note);

int import_external(void** out, std::size_t bytes);
int external_buffer(Address* out, void* external, std::size_t offset, std::size_t bytes);
bool is_external(void* external);
int destroy_external(void* external);

}  // namespace fake_gpu
