// What the calls of a driver mean: one action for each row of the tables (call.h says what an
// action may have). CUDA and HIP have the same ones. Any pointer a program passes may be NULL.
#pragma once

#include <type_traits>

#include "recorder/device.h"
#include "shim/gpu/call.h"

namespace oomrec::shim::gpu {

// An address or a handle as a number.
template <class T>
std::uint64_t key_of(T value) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(value);
}
template <class T>
std::uint64_t value_at(const T* out) noexcept {
  return out == nullptr ? 0 : key_of(*out);
}

// Enters what the program was given at, or as, `key`, and where.
inline recorder::DeviceMemory memory_of(const Call& call, DeviceKey what, DeviceKind kind,
                                        std::uint64_t key, std::uint64_t bytes) noexcept {
  return {call.api, {call.vendor, what, key}, kind, bytes, call.device, call.site.context, 0};
}
inline void give(InHook hook, const recorder::DeviceMemory& memory) noexcept {
  if (memory.name.key != 0) recorder::on_device_allocate(hook, memory);
}

// Nothing is allocated by name, but it may be refused.
struct Refusable {
  Wants wants() const noexcept { return {}; }
};

// --- Memory
// ----------------------------------------------------------------------------------------

// What a call gives at *out. `kEndsWith…`: with its context, or with the process.
enum class Ends : bool { with_context, with_process };
template <DeviceKey kWhat, DeviceKind kKind, Ends kEnds, class Out>
struct Given {
  Out* out;
  std::uint64_t bytes;

  Wants wants() const noexcept { return {bytes, kKind}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::DeviceMemory memory = memory_of(call, kWhat, kKind, value_at(out), bytes);
    if (kEnds == Ends::with_process) memory.context = 0;
    give(hook, memory);
  }
};
#define OOMREC_GIVEN(Action, what, kind, ends)                                    \
  template <class Out>                                                            \
  auto Action(Out* out, std::uint64_t bytes = 0) noexcept {                       \
    return Given<DeviceKey::what, DeviceKind::kind, Ends::ends, Out>{out, bytes}; \
  }
OOMREC_GIVEN(Block, address, block, with_context)
OOMREC_GIVEN(ManagedBlock, address, managed, with_context)
OOMREC_GIVEN(HostBlock, host, host, with_context)
OOMREC_GIVEN(Array, array, block, with_context)
OOMREC_GIVEN(MipmappedArray, array, block, with_context)
OOMREC_GIVEN(ImportedHandle, handle, imported, with_process)
OOMREC_GIVEN(Reservation, reservation, reserved, with_process)
#undef OOMREC_GIVEN

// Addresses of several devices' memory.
template <class Out, class Props>
auto MulticastHandle(Out* out, const Props* props) noexcept {
  return Given<DeviceKey::handle, DeviceKind::reserved, Ends::with_process, Out>{
      out, props == nullptr ? 0 : props->size};
}

struct HostRegistration {
  const void* address;
  std::uint64_t bytes;

  Wants wants() const noexcept { return {bytes, DeviceKind::host}; }
  void done(InHook hook, const Call& call) const noexcept {
    give(hook, memory_of(call, DeviceKey::host, DeviceKind::host, key_of(address), bytes));
  }
};

template <class Out, class Size>
struct PitchedBlock {
  Out* out;
  const Size* pitch;  // set by the call
  std::uint64_t width, rows;

  Wants wants() const noexcept { return {width * rows, DeviceKind::block}; }
  void done(InHook hook, const Call& call) const noexcept {
    const std::uint64_t bytes = (pitch == nullptr ? width : *pitch) * rows;
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::block, value_at(out), bytes));
  }
};
template <class Out, class Size, class W, class R>
PitchedBlock(Out*, Size*, W, R) -> PitchedBlock<Out, std::remove_const_t<Size>>;

template <class Pitched, class Extent>
struct Pitched3D {
  const Pitched* out;
  Extent extent;

  Wants wants() const noexcept {
    return {extent.width * extent.height * extent.depth, DeviceKind::block};
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (out == nullptr) return;
    const std::uint64_t bytes = out->pitch * extent.height * extent.depth;
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::block, key_of(out->ptr), bytes));
  }
};
template <class Pitched, class Extent>
Pitched3D(Pitched*, Extent) -> Pitched3D<Pitched, Extent>;

// Another's memory: how much, the driver is asked.
template <class Out>
struct ImportedBlock {
  const Out* out;
  std::uint64_t bytes = 0;

  Wants wants() const noexcept { return {0, DeviceKind::imported}; }
  void ask(const Call& call) noexcept { bytes = queries_of(call.vendor).bytes_at(value_at(out)); }
  void done(InHook hook, const Call& call) const noexcept {
    give(hook, memory_of(call, DeviceKey::address, DeviceKind::imported, value_at(out), bytes));
  }
};
template <class Out>
auto OpenedIpc(Out* out) noexcept {
  return ImportedBlock<Out>{out};
}
template <class Out>
auto ImportedPointer(Out* out) noexcept {
  return ImportedBlock<Out>{out};
}

template <class Out, class Description>
auto External(Out* out, const Description* description) noexcept {
  return Given<DeviceKey::external, DeviceKind::imported, Ends::with_process, Out>{
      out, description == nullptr ? 0 : description->size};
}

// --- Releases: recorded before the real call, because another thread may get the address at once
// ------

template <DeviceKey kWhat>
struct Released {
  std::uint64_t key;
  recorder::DeviceReleased released{};

  void before(InHook hook, const Call& call) noexcept {
    released = recorder::on_device_free(hook, call.api, {call.vendor, kWhat, key});
  }
  void undone(InHook hook) const noexcept { recorder::restore_on_device(hook, released); }
};
#define OOMREC_RELEASED(Action, what)                \
  template <class Key>                               \
  auto Action(Key key, std::uint64_t = 0) noexcept { \
    return Released<DeviceKey::what>{key_of(key)};   \
  }
OOMREC_RELEASED(FreedBlock, address)
OOMREC_RELEASED(FreedHost, host)
OOMREC_RELEASED(Unregistered, host)
OOMREC_RELEASED(FreedArray, array)
OOMREC_RELEASED(FreedMipmapped, array)
OOMREC_RELEASED(ClosedIpc, address)
OOMREC_RELEASED(DestroyedExternal, external)
OOMREC_RELEASED(ReleasedHandle, handle)
OOMREC_RELEASED(FreedReservation, reservation)
#undef OOMREC_RELEASED

// --- In the order of a stream, from pools
// --------------------------------------------------------------

// On a stream that is captured the block belongs to the graph.
template <class Out>
struct OrderedBlock {
  Out* out;
  std::uint64_t bytes;
  const void* stream;
  void* pool;
  std::uint64_t graph = 0;

  Wants wants() const noexcept { return {bytes, DeviceKind::pooled}; }
  Site where(const Call& call) const noexcept {
    return site_of_stream(call.vendor, call.stream(stream));
  }
  std::uint32_t device(const Call& call) const noexcept {
    const HookScope scope;
    return recorder::device_of_pool(scope.in_hook(), {call.vendor, DeviceKey::pool, key_of(pool)});
  }
  void look_at_its_pool(const Call& call) const noexcept {
    look_at_pool(call.vendor, call.device, call.site.ordinal, pool);
  }
  void ask(const Call& call) noexcept {
    graph = queries_of(call.vendor).capturing_graph(call.stream(stream));
  }
  void done(InHook hook, const Call& call) const noexcept {
    const DeviceKind kind = graph != 0 ? DeviceKind::block : DeviceKind::pooled;
    recorder::DeviceMemory memory = memory_of(call, DeviceKey::address, kind, value_at(out), bytes);
    if (memory.name.key == 0) return;
    memory.context = 0;
    if (graph != 0) return recorder::on_graph_block(hook, graph, memory);
    memory.owner = key_of(pool);
    recorder::on_device_allocate(hook, memory);
  }
};
template <class Out, class Bytes, class Stream, class PoolOrNone>
OrderedBlock(Out*, Bytes, Stream, PoolOrNone) -> OrderedBlock<Out>;

struct FreedOrdered {
  template <class Address>
  FreedOrdered(Address address, const void* on) noexcept : freed{key_of(address)}, stream(on) {}
  Released<DeviceKey::address> freed;
  const void* stream;
  std::uint64_t graph = 0;

  void prepare(const Call& call) noexcept {
    graph = queries_of(call.vendor).capturing_graph(call.stream(stream));
  }
  void before(InHook hook, const Call& call) noexcept {
    if (graph == 0) freed.before(hook, call);
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (graph != 0) recorder::on_graph_free(hook, call.vendor, graph, freed.key);
  }
  void undone(InHook hook) const noexcept { freed.undone(hook); }
};

// A pool is known from its making on by its device; the others by the first look at them.
template <class Out, class Props>
struct Pool {
  const Out* out;
  const Props* props;

  Wants wants() const noexcept { return {}; }
  void ask(Call& call) const noexcept {
    if (props != nullptr) call.device = entry_of(call.vendor, device_of(&props->location));
  }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_pool_look(hook, {call.vendor, DeviceKey::pool, value_at(out)}, call.device, 0);
  }
};
template <class Out, class Props>
Pool(Out*, Props*) -> Pool<Out, std::remove_const_t<Props>>;

template <class Out>
Refusable ImportedPool(Out*) noexcept {
  return {};
}
template <class Out>
struct DevicePool {
  const Out* out;
  std::int32_t ordinal;

  Wants wants() const noexcept { return {}; }
  void ask(const Call& call) const noexcept {
    if (ordinal >= 0 && value_at(out) != 0)
      look_at_pool(call.vendor, entry_of(call.vendor, ordinal), ordinal, *out);
  }
};
template <class Out>
DevicePool(Out*, std::int32_t) -> DevicePool<Out>;

inline Refusable SelectedPool(std::int32_t, const void*) noexcept { return {}; }

struct DestroyedPool {
  const void* pool;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_pool_end(hook, call.api, {call.vendor, DeviceKey::pool, key_of(pool)});
  }
};

struct TrimmedPool {
  void* pool;
  void ask(const Call& call) const noexcept {
    const Site site = current_site(call.vendor);
    look_at_pool(call.vendor, entry_of(call.vendor, site.ordinal), site.ordinal, pool);
  }
};

// --- Memory and addresses apart
// ------------------------------------------------------------------------

template <class Out, class Props>
struct Handle {
  Out* out;
  std::uint64_t bytes;
  const Props* props;

  std::int32_t ordinal() const noexcept {
    return props == nullptr ? -1 : device_of(&props->location);
  }
  Wants wants() const noexcept {
    return {bytes, ordinal() < 0 ? DeviceKind::host : DeviceKind::block};
  }
  Site where(const Call&) const noexcept { return {ordinal(), 0}; }
  void done(InHook hook, const Call& call) const noexcept {
    give(hook, memory_of(call, DeviceKey::handle, wants().kind, value_at(out), bytes));
  }
};
template <class Out, class Bytes, class Props>
Handle(Out*, Bytes, Props*) -> Handle<Out, std::remove_const_t<Props>>;

template <class Out>
struct RetainedHandle {
  Out* out;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    const recorder::DeviceName name{call.vendor, DeviceKey::handle, value_at(out)};
    if (!recorder::on_device_retain(hook, name)) ImportedHandle(out).done(hook, call);
  }
};
template <class Out>
RetainedHandle(Out*) -> RetainedHandle<Out>;

template <class Address, class Key>
struct Mapping {
  Address address;
  std::uint64_t bytes;
  Key handle;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_device_map(hook, call.api, call.vendor, key_of(address), bytes, key_of(handle));
  }
};
template <class Address, class Bytes, class Key>
Mapping(Address, Bytes, Key) -> Mapping<Address, Key>;

template <class Address>
struct Unmapped {
  Address address;
  std::uint64_t bytes;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_device_unmap(hook, call.api, call.vendor, key_of(address), bytes);
  }
};
template <class Address, class Bytes>
Unmapped(Address, Bytes) -> Unmapped<Address>;

template <class Change>
Refusable SparseMapping(const Change*, unsigned) noexcept {
  return {};
}
template <class... Any>
Refusable BoundHandle(Any...) noexcept {
  return {};
}
template <class... Any>
Refusable BoundAddress(Any...) noexcept {
  return {};
}
template <class... Any>
Refusable Unbound(Any...) noexcept {
  return {};
}

// --- Graphs
// --------------------------------------------------------------------------------------------

template <class Params>
struct GraphBlock {
  const void* graph;
  const Params* params;

  Wants wants() const noexcept { return {params == nullptr ? 0 : params->bytesize}; }
  void ask(Call& call) const noexcept {
    if (params != nullptr)
      call.device = entry_of(call.vendor, device_of(&params->poolProps.location));
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (params == nullptr) return;
    recorder::DeviceMemory memory = memory_of(call, DeviceKey::address, DeviceKind::block,
                                              key_of(params->dptr), params->bytesize);
    memory.context = 0;
    if (memory.name.key != 0) recorder::on_graph_block(hook, key_of(graph), memory);
  }
};
template <class Graph, class Params>
GraphBlock(Graph, Params*) -> GraphBlock<std::remove_const_t<Params>>;

template <class Address>
struct GraphFree {
  const void* graph;
  Address address;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_free(hook, call.vendor, key_of(graph), key_of(address));
  }
};
template <class Graph, class Address>
GraphFree(Graph, Address) -> GraphFree<Address>;

// A node of any type: the numbers of the types are those of both vendors.
template <class Params>
struct GraphNode {
  static constexpr int kAllocation = 10, kRelease = 11;
  const void* graph;
  const Params* params;

  Wants wants() const noexcept {
    const bool allocates = params != nullptr && params->type == kAllocation;
    return allocates ? GraphBlock{graph, &params->alloc}.wants() : Wants{};
  }
  void ask(Call& call) const noexcept {
    if (params != nullptr && params->type == kAllocation)
      GraphBlock{graph, &params->alloc}.ask(call);
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (params == nullptr) return;
    if (params->type == kAllocation) GraphBlock{graph, &params->alloc}.done(hook, call);
    if (params->type == kRelease) GraphFree{graph, params->free.dptr}.done(hook, call);
  }
};
template <class Graph, class Params>
GraphNode(Graph, Params*) -> GraphNode<std::remove_const_t<Params>>;

template <class Out>
struct Instantiated {
  const Out* out;
  const void* graph;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    if (value_at(out) != 0)
      recorder::on_graph_instantiated(hook, call.vendor, key_of(graph), value_at(out));
  }
};
template <class Out, class Graph>
Instantiated(Out*, Graph) -> Instantiated<Out>;

struct Launched {
  const void* executable;
  Wants wants() const noexcept { return {}; }
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_launched(hook, call.api, call.vendor, key_of(executable));
  }
};

struct DestroyedGraph {
  const void* graph;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_graph_destroyed(hook, call.vendor, key_of(graph));
  }
};

struct DestroyedExec {
  const void* executable;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_executable_destroyed(hook, call.vendor, key_of(executable));
  }
};

// A graph with memory nodes can be neither copied nor made part of another.
template <class Out>
Refusable ClonedGraph(Out*, const void*) noexcept {
  return {};
}
inline Refusable ChildGraph(const void*, const void*) noexcept { return {}; }
inline Refusable GraphTrim(std::int32_t) noexcept { return {}; }

// --- Contexts
// --------------------------------------------------------------------------------------------

// All that lives in a context goes with it.
struct ContextEnd {
  template <class Context>
  explicit ContextEnd(Context ended) noexcept : context(key_of(ended)) {}
  std::uint64_t context;
  void done(InHook hook, const Call& call) const noexcept {
    note_context({-1, context});  // another may get its handle
    recorder::on_context_end(hook, call.api, call.vendor, context);
  }
};

// Its device is known from its making on.
template <class Out>
struct MadeContext {
  const Out* out;
  std::int32_t ordinal;

  Wants wants() const noexcept { return {}; }
  Site where(const Call&) const noexcept { return {ordinal, 0}; }
  void done(InHook, const Call&) const noexcept { note_context({ordinal, value_at(out)}); }
};
template <class Out>
MadeContext(Out*, std::int32_t) -> MadeContext<Out>;

template <class Out>
struct PrimaryRetained : MadeContext<Out> {
  PrimaryRetained(const Out* at, std::int32_t device) noexcept : MadeContext<Out>{at, device} {}
  void done(InHook hook, const Call& call) const noexcept {
    MadeContext<Out>::done(hook, call);
    note_primary_context(this->ordinal, value_at(this->out));
  }
};

struct DeviceReset {
  std::int32_t ordinal;
  void done(InHook hook, const Call& call) const noexcept {
    recorder::on_device_reset(hook, call.api, call.vendor, primary_context(call.vendor, ordinal),
                              recorder::device_entry(hook, call.vendor, ordinal));
  }
};

// The context lives until its last user has released it.
struct PrimaryRelease {
  std::int32_t ordinal;
  bool ended = false;
  explicit PrimaryRelease(std::int32_t device) noexcept : ordinal(device) {}
  void ask(const Call& call) noexcept {
    ended = queries_of(call.vendor).primary_has_ended(ordinal);
  }
  void done(InHook hook, const Call& call) const noexcept {
    if (ended) DeviceReset{ordinal}.done(hook, call);
  }
};

struct CurrentDeviceReset {
  std::int32_t ordinal = -1;
  void prepare(const Call& call) noexcept { ordinal = current_site(call.vendor).ordinal; }
  void done(InHook hook, const Call& call) const noexcept { DeviceReset{ordinal}.done(hook, call); }
};

// --- Look-ups
// ----------------------------------------------------------------------------------------------

struct Resolver {
  Resolver(const char*, void** out) noexcept : at(out) {}
  void** at;
  void ask(const Call& call) const noexcept {
    if (at != nullptr) *at = driver_of(call.vendor).given_for(*at, nullptr, LookUp::resolver);
  }
};

}  // namespace oomrec::shim::gpu
