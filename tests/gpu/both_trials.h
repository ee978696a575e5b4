// Each function that CUDA's and HIP's tables both have, once: the vendor's file includes this after
// its header, which has the types, and DRIVER(name), the function's name.
#pragma once

namespace oomrec::gpu_trial {

inline void* as_pointer(int descriptor) {
  return reinterpret_cast<void*>(std::intptr_t{descriptor});
}

// --- Modules

MAY_BE_REFUSED(DRIVER(ModuleLoad), Module, (&out, "module"), 0)
MAY_BE_REFUSED(DRIVER(ModuleLoadData), Module, (&out, "image"), 0)
MAY_BE_REFUSED(DRIVER(ModuleLoadDataEx), Module, (&out, "image", 0, nullptr, nullptr), 0)
MAY_BE_REFUSED(DRIVER(ModuleLoadFatBinary), Module, (&out, "image"), 0)
MAY_BE_REFUSED(DRIVER(LibraryLoadData), Library,
               (&out, "code", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)
MAY_BE_REFUSED(DRIVER(LibraryLoadFromFile), Library,
               (&out, "path", nullptr, nullptr, 0, nullptr, nullptr, 0), 0)

// --- Device and host memory

namespace {

constexpr unsigned kWidth = 1000, kRows = 4096;  // the fake's pitch is a multiple of 512

template <class Address, class Size, class Allocate, class Free>
void pitched(const Allocate& allocate, Free release) {
  Address out{};
  Size pitch = 0;
  gives({kMain, kBytes, kWidth * kRows}, out, [&] { return allocate(&out, &pitch); });
  CHECK(pitch * kRows == kBytes);
  need(release(out));
}

alignas(4096) char g_own[kBytes];

template <class Register, class Unregister>
void registers(Register register_own, Unregister unregister) {
  gives({kHost, kBytes}, g_own, [&] { return register_own(g_own, kBytes, 0); });
  need(unregister(g_own));
}

template <class Register, class Unregister>
void unregisters(Register register_own, Unregister unregister) {
  need(register_own(g_own, kBytes, 0));
  takes({kHost, kBytes}, [&] { return unregister(g_own); });
}

// --- Pools

template <class Allocate, class Free>
void from_pool(Allocate allocate, Free release) {
  const MemoryPool pool = new_pool();
  Pointer out{};
  gives({kMain, kBytes}, out, [&] { return allocate(&out, kBytes, pool, nullptr); });
  need(release(out, nullptr));
  need(f.DRIVER(MemPoolDestroy)(pool));
}

// As another process would import it.
int import(MemoryPool* out, MemoryPool pool) {
  int shared = -1;
  need(other.DRIVER(MemPoolExportToShareableHandle)(&shared, pool, 1, 0));
  return f.DRIVER(MemPoolImportFromShareableHandle)(out, as_pointer(shared), 1, 0);
}

}  // namespace

MAY_BE_REFUSED(DRIVER(MemPoolCreate), MemoryPool, (&out, &kPoolProps),
               f.DRIVER(MemPoolDestroy)(out))
MAY_BE_REFUSED(DRIVER(DeviceGetDefaultMemPool), MemoryPool, (&out, kOrdinal), 0)
MAY_BE_REFUSED(DRIVER(DeviceGetMemPool), MemoryPool, (&out, kOrdinal), 0)

OOMREC_TRIAL(DRIVER(MemGetDefaultMemPool)) {
  Location there = kThere;
  MemoryPool out = nullptr;
  may_fail({kMain}, [&] { return f.DRIVER(MemGetDefaultMemPool)(&out, &there, 1); });
}
OOMREC_TRIAL(DRIVER(MemGetMemPool)) {
  Location there = kThere;
  MemoryPool out = nullptr;
  may_fail({kMain}, [&] { return f.DRIVER(MemGetMemPool)(&out, &there, 1); });
}
OOMREC_TRIAL(DRIVER(MemSetMemPool)) {
  Location there = kThere;
  MemoryPool pool = nullptr;
  need(f.DRIVER(DeviceGetMemPool)(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.DRIVER(MemSetMemPool)(&there, 1, pool); });
}
OOMREC_TRIAL(DRIVER(DeviceSetMemPool)) {
  MemoryPool pool = nullptr;
  need(f.DRIVER(DeviceGetMemPool)(&pool, kOrdinal));
  may_fail({kMain}, [&] { return f.DRIVER(DeviceSetMemPool)(kOrdinal, pool); });
}
OOMREC_TRIAL(DRIVER(MemPoolImportFromShareableHandle)) {
  const MemoryPool pool = new_pool();
  MemoryPool out = nullptr;
  may_fail({kMain}, [&] { return import(&out, pool); });
  need(f.DRIVER(MemPoolDestroy)(out));
  need(f.DRIVER(MemPoolDestroy)(pool));
}
OOMREC_TRIAL(DRIVER(MemPoolImportPointer)) {
  const MemoryPool pool = new_pool();
  MemoryPool there = nullptr;
  need(import(&there, pool));
  Pointer block{}, out{};
  need(allocate_from(pool, &block));
  alignas(8) char shared[64];
  need(other.DRIVER(MemPoolExportPointer)(shared, block));
  gives({kVa, kBytes, 0}, out, [&] {
    return f.DRIVER(MemPoolImportPointer)(&out, there,
                                          reinterpret_cast<SharedPoolPointer*>(shared));
  });
  free_block(out);
  free_block(block);
  need(f.DRIVER(MemPoolDestroy)(there));
  need(f.DRIVER(MemPoolDestroy)(pool));
}
OOMREC_TRIAL(DRIVER(MemPoolTrimTo)) {
  const MemoryPool pool = new_pool();
  passes([&] { return f.DRIVER(MemPoolTrimTo)(pool, 0); });
  need(f.DRIVER(MemPoolDestroy)(pool));
}
OOMREC_TRIAL(DRIVER(MemPoolDestroy)) {
  const MemoryPool pool = new_pool();
  passes([&] { return f.DRIVER(MemPoolDestroy)(pool); });
}

// --- Virtual memory

GIVES(DRIVER(MemCreate), Handle, kMain, (&out, kBytes, &kHandleProps, 0), f.DRIVER(MemRelease)(out))
TAKES(DRIVER(MemRelease), Handle, kMain, f.DRIVER(MemCreate)(&out, kBytes, &kHandleProps, 0), (out))
GIVES(DRIVER(MemAddressReserve), Pointer, kVa, (&out, kBytes, 0, Pointer{}, 0),
      f.DRIVER(MemAddressFree)(out, kBytes))
TAKES(DRIVER(MemAddressFree), Pointer, kVa,
      f.DRIVER(MemAddressReserve)(&out, kBytes, 0, Pointer{}, 0), (out, kBytes))

namespace {

// A handle and addresses for its memory, which is mapped on demand.
struct Mapping {
  Handle handle = new_handle();
  Pointer address{};
  Mapping() { need(f.DRIVER(MemAddressReserve)(&address, kBytes, 0, Pointer{}, 0)); }
  ~Mapping() {
    f.DRIVER(MemAddressFree)(address, kBytes);
    f.DRIVER(MemRelease)(handle);
  }
  int map() { return f.DRIVER(MemMap)(address, kBytes, 0, handle, 0); }
  int unmap() { return f.DRIVER(MemUnmap)(address, kBytes); }
};

struct Mapped : Mapping {
  Mapped() { need(map()); }
  ~Mapped() { unmap(); }
};

}  // namespace

OOMREC_TRIAL(DRIVER(MemImportFromShareableHandle)) {
  const Handle handle = new_handle();
  int shared = -1;
  need(other.DRIVER(MemExportToShareableHandle)(&shared, handle, 1, 0));
  Handle out{};
  gives({kVa}, out,
        [&] { return f.DRIVER(MemImportFromShareableHandle)(&out, as_pointer(shared), 1); });
  need(f.DRIVER(MemRelease)(out));
  need(f.DRIVER(MemRelease)(handle));
}
OOMREC_TRIAL(DRIVER(MemRetainAllocationHandle)) {
  const Mapped mapped;
  Handle out{};
  may_fail({kMain},
           [&] { return f.DRIVER(MemRetainAllocationHandle)(&out, (void*)mapped.address); });
  CHECK(own_session::block_at(DeviceKey::handle, key_of(out))->references == 3);
  need(f.DRIVER(MemRelease)(out));
}
OOMREC_TRIAL(DRIVER(MemMap)) {
  Mapping mapping;
  const auto map = [&] { return mapping.map(); };
  check_failure({kMain}, map);
  moves_addresses(EventKind::map, {kVa, kBytes}, map);
  need(mapping.unmap());
}
OOMREC_TRIAL(DRIVER(MemUnmap)) {
  Mapping mapping;
  need(mapping.map());
  const auto unmap = [&] { return mapping.unmap(); };
  fail(unmap);
  moves_addresses(EventKind::unmap, {kVa, kBytes}, unmap);
}

// --- Memory of other processes and interfaces

namespace {

template <class Open>
void opens_ipc(Open open) {
  const Pointer block = new_block();
  IpcHandle shared;
  need(other.DRIVER(IpcGetMemHandle)(&shared, block));
  Pointer out{};
  gives({kVa, kBytes, 0}, out, [&] { return open(&out, shared, 1); });
  need(f.DRIVER(IpcCloseMemHandle)(out));
  free_block(block);
}

const ExternalDescription kExternal = [] {
  ExternalDescription description{};
  description.type = 1;
  description.size = kBytes;
  return description;
}();

struct External {
  ExternalMemory memory = nullptr;
  External() { need(f.DRIVER(ImportExternalMemory)(&memory, &kExternal)); }
  ~External() { f.DRIVER(DestroyExternalMemory)(memory); }
};

}  // namespace

OOMREC_TRIAL(DRIVER(IpcOpenMemHandle)) { opens_ipc(f.DRIVER(IpcOpenMemHandle)); }
OOMREC_TRIAL(DRIVER(IpcCloseMemHandle)) {
  const Pointer block = new_block();
  IpcHandle shared;
  need(other.DRIVER(IpcGetMemHandle)(&shared, block));
  Pointer out{};
  need(f.DRIVER(IpcOpenMemHandle)(&out, shared, 1));
  takes({kVa, kBytes}, [&] { return f.DRIVER(IpcCloseMemHandle)(out); });
  free_block(block);
}

GIVES(DRIVER(ImportExternalMemory), ExternalMemory, kVa, (&out, &kExternal),
      f.DRIVER(DestroyExternalMemory)(out))
TAKES(DRIVER(DestroyExternalMemory), ExternalMemory, kVa,
      f.DRIVER(ImportExternalMemory)(&out, &kExternal), (out))

OOMREC_TRIAL(DRIVER(ExternalMemoryGetMappedBuffer)) {
  const External external;
  ExternalBuffer part{};
  part.size = kBytes;
  Pointer out{};
  may_fail({kMain},
           [&] { return f.DRIVER(ExternalMemoryGetMappedBuffer)(&out, external.memory, &part); });
  free_block(out);
}

// --- Graphs

MAY_BE_REFUSED(DRIVER(GraphCreate), GraphHandle, (&out, 0), f.DRIVER(GraphDestroy)(out))
MAY_BE_REFUSED(DRIVER(DeviceGraphMemTrim), int, (kOrdinal), 0)

OOMREC_TRIAL(DRIVER(GraphClone)) {
  const Graph original;
  GraphHandle out = nullptr;
  may_fail({kMain}, [&] { return f.DRIVER(GraphClone)(&out, original.graph); });
  need(f.DRIVER(GraphDestroy)(out));
}
OOMREC_TRIAL(DRIVER(GraphAddChildGraphNode)) {
  const Graph child;
  Graph graph;
  may_fail({kMain}, [&] {
    return f.DRIVER(GraphAddChildGraphNode)(&graph.node, graph.graph, nullptr, 0, child.graph);
  });
}
OOMREC_TRIAL(DRIVER(GraphAddMemAllocNode)) {
  Graph graph;
  AllocationNode params{kPoolProps, nullptr, 0, kBytes, {}};
  adds_a_block({kMain}, params.dptr, [&] {
    return f.DRIVER(GraphAddMemAllocNode)(&graph.node, graph.graph, nullptr, 0, &params);
  });
}

#define ADDS_A_NODE(name, ...)                                                            \
  OOMREC_TRIAL(name) {                                                                    \
    Graph graph;                                                                          \
    NodeParams params{};                                                                  \
    params.type = kAllocationNode;                                                        \
    params.alloc = {kPoolProps, nullptr, 0, kBytes, {}};                                  \
    adds_a_block({kMain}, params.alloc.dptr,                                              \
                 [&] { return f.name(&graph.node, graph.graph, __VA_ARGS__, &params); }); \
  }
ADDS_A_NODE(DRIVER(GraphAddNode), nullptr, 0)

#define ADDS_A_FREE(name)                                                                   \
  OOMREC_TRIAL(name) {                                                                      \
    Graph graph;                                                                            \
    const Pointer block = graph.add_block();                                                \
    may_fail({kMain}, [&] { return f.name(&graph.node, graph.graph, nullptr, 0, block); }); \
  }
ADDS_A_FREE(DRIVER(GraphAddMemFreeNode))

#define INSTANTIATES(name, arguments)                    \
  OOMREC_TRIAL(name) {                                   \
    const Graph graph;                                   \
    GraphExec out = nullptr;                             \
    may_fail({kMain}, [&] { return f.name arguments; }); \
    need(f.DRIVER(GraphExecDestroy)(out));               \
  }
INSTANTIATES(DRIVER(GraphInstantiate), (&out, graph.graph, nullptr, nullptr, 0))
INSTANTIATES(DRIVER(GraphInstantiateWithFlags), (&out, graph.graph, 0))
INSTANTIATES(DRIVER(GraphInstantiateWithParams), (&out, graph.graph, InstantiateParams{}.get()))

namespace {

template <class Upload>
void uploads(Upload upload) {
  Graph graph;
  const GraphExec exec = graph.instantiate();
  may_fail({kMain}, [&] { return upload(exec, nullptr); });
  need(f.DRIVER(GraphExecDestroy)(exec));
}

template <class Launch>
void launches(Launch launch) {
  Graph graph;
  const Pointer block = graph.add_block();
  const GraphExec exec = graph.instantiate();
  gives({kMain, kBytes, 0}, block, [&] { return launch(exec, nullptr); });
  free_block(block);
  need(f.DRIVER(GraphExecDestroy)(exec));
}

}  // namespace

OOMREC_TRIAL(DRIVER(GraphUpload)) { uploads(f.DRIVER(GraphUpload)); }
OOMREC_TRIAL(DRIVER(GraphLaunch)) { launches(f.DRIVER(GraphLaunch)); }

OOMREC_TRIAL(DRIVER(GraphExecDestroy)) {
  Graph graph;
  const GraphExec exec = graph.instantiate();
  passes([&] { return f.DRIVER(GraphExecDestroy)(exec); });
}
OOMREC_TRIAL(DRIVER(GraphDestroy)) {
  GraphHandle graph = nullptr;
  need(f.DRIVER(GraphCreate)(&graph, 0));
  passes([&] { return f.DRIVER(GraphDestroy)(graph); });
}

}  // namespace oomrec::gpu_trial
