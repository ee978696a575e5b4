// What the trials and traps of CUDA and HIP share. The vendor's header includes it last: it has the
// types, DRIVER(name), the function's name, and kDriver, the library's.
#pragma once

#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {

using Handle = MemoryHandle;

inline constexpr std::int64_t kOne = kBytes;

// The driver's functions, found by dlsym.
struct Reached {
  void* const library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  Reached() {
    REQUIRE(library != nullptr);
#define X(name, ...) look_up(library, #name, f.name);
    CLIENT_FUNCTIONS(X)
#undef X
#define X(name, parameters) look_up(library, #name, other.name);
    CLIENT_OTHER_FUNCTIONS(X)
#undef X
    look_up(library, "fake_gpu_fail", g_fail);
  }
};

inline constexpr Location kThere{kOnDevice, kOrdinal};
inline constexpr HandleProps kHandleProps{1, 0, kThere, nullptr, {}};
inline constexpr PoolProps kPoolProps{1, 0, kThere, nullptr, {}};

inline MemoryPool new_pool() {
  MemoryPool pool = nullptr;
  need(f.DRIVER(MemPoolCreate)(&pool, &kPoolProps));
  return pool;
}

inline Handle new_handle() {
  Handle handle{};
  need(f.DRIVER(MemCreate)(&handle, kBytes, &kHandleProps, 0));
  return handle;
}

struct Graph {
  GraphHandle graph = nullptr;
  GraphNode node = nullptr;
  Graph() { need(f.DRIVER(GraphCreate)(&graph, 0)); }
  ~Graph() { f.DRIVER(GraphDestroy)(graph); }

  Pointer add_block(std::uint64_t bytes = kBytes) {
    AllocationNode params{kPoolProps, nullptr, 0, bytes, 0};
    need(f.DRIVER(GraphAddMemAllocNode)(&node, graph, nullptr, 0, &params));
    return params.dptr;
  }
  void add_free(Pointer block) {
    need(f.DRIVER(GraphAddMemFreeNode)(&node, graph, nullptr, 0, block));
  }
  GraphExec instantiate() {
    GraphExec exec = nullptr;
    need(f.DRIVER(GraphInstantiateWithFlags)(&exec, graph, 0));
    return exec;
  }
};

}  // namespace oomrec::gpu_trial
