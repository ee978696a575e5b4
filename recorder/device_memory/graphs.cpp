#include "recorder/device_memory/graphs.h"

#include "recorder/device_memory/accounting.h"
#include "recorder/stack/stack.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using live::DeviceBlock;
using session::g_session;

namespace {

bool is_node_of(const DeviceBlock& block, Vendor vendor, std::uint64_t graph) noexcept {
  const bool node =
      block.name.what == DeviceKey::graph_block || block.name.what == DeviceKey::graph_free;
  return node && block.name.vendor == vendor && block.owner == graph;
}

void insert(InHook hook, const DeviceBlock& block) noexcept {
  DeviceBlock replaced;
  if (!g_state.device_blocks.insert(hook, block, replaced)) drop();
}

// The graph ends before its executable, which owns the nodes from now on.
void change_owner(InHook hook, Vendor vendor, std::uint64_t from, std::uint64_t to) noexcept {
  g_state.device_blocks.for_each(hook, [&](DeviceBlock& block) noexcept {
    if (!is_node_of(block, vendor, from)) return Then::leave;
    block.owner = to;
    return Then::changed;
  });
}

// These nodes will not be launched again. A live block stays until it is freed, without an owner.
void release_nodes(InHook hook, Vendor vendor, std::uint64_t owner) noexcept {
  g_state.device_blocks.for_each(hook, [&](DeviceBlock& block) noexcept {
    if (!is_node_of(block, vendor, owner)) return Then::leave;
    block.owner = 0;
    return block.is_live() ? Then::changed : Then::gone;
  });
}

// Applies a launch to a block: makes it live, frees it, or leaves it alone.
Then launch(DeviceBlock& block, Vendor vendor, std::uint64_t graph) noexcept {
  const bool node = block.name.what == DeviceKey::graph_block;
  if (block.name.vendor != vendor) return Then::leave;
  if (node && block.owner == graph && !block.is_live() &&
      (block.flags & session::kDeviceFreedInside) == 0) {
    block.flags &= static_cast<std::uint8_t>(~session::kDeviceDormant);
    return Then::changed;
  }
  const bool freed =
      (node || block.name.what == DeviceKey::address) && block.is_live() &&
      g_state.device_blocks.is_owned({vendor, DeviceKey::graph_free, block.name.key}, graph);
  if (!freed) return Then::leave;
  block.flags |= session::kDeviceDormant;
  return node && block.owner != 0 ? Then::changed : Then::gone;
}

}  // namespace

void on_graph_block(InHook hook, std::uint64_t graph, const DeviceMemory& memory) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  NodeScope nodes{hook};
  const DeviceCaller from = device_caller(hook, nodes);
  DeviceBlock block;
  block.name = {memory.name.vendor, DeviceKey::graph_block, memory.name.key};
  block.bytes = memory.bytes;
  block.owner = graph;
  block.device = memory.device;
  block.kind = memory.kind;
  block.flags = session::kDeviceDormant;
  if (from.node != 0) {
    const Space space = space_of(memory.name.vendor, memory.kind);
    block.holder = g_state.holders.find_or_add(hook, from.node, space, memory.api, 0);
  }
  insert(hook, block);
}

void on_graph_free(InHook hook, Vendor vendor, std::uint64_t graph,
                   std::uint64_t address) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  bool own = false;
  g_state.device_blocks.change(hook, {vendor, DeviceKey::graph_block, address},
                               [&](DeviceBlock& block) noexcept {
                                 own = block.owner == graph;
                                 if (own) block.flags |= session::kDeviceFreedInside;
                                 return true;
                               });
  if (own) return;
  DeviceBlock node;
  node.name = {vendor, DeviceKey::graph_free, address};
  node.owner = graph;
  node.flags = session::kDeviceDormant;
  insert(hook, node);
}

void on_graph_instantiated(InHook hook, Vendor vendor, std::uint64_t graph,
                           std::uint64_t executable) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  bool has_nodes = false;
  g_state.device_blocks.for_each(hook, [&](const DeviceBlock& block) noexcept {
    has_nodes |= is_node_of(block, vendor, graph);
    return Then::leave;
  });
  if (!has_nodes) return;
  DeviceBlock entry;
  entry.name = {vendor, DeviceKey::executable, executable};
  entry.owner = graph;
  insert(hook, entry);
}

void on_graph_launched(InHook hook, Api api, Vendor vendor, std::uint64_t executable) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  DeviceBlock entry;
  if (!g_state.device_blocks.find(hook, {vendor, DeviceKey::executable, executable}, entry)) return;
  ThreadState* const thread = current_thread(hook);
  g_state.device_blocks.for_each(hook, [&](DeviceBlock& block) noexcept {
    const Then then = launch(block, vendor, entry.owner);
    if (then == Then::leave) return then;
    const bool comes = block.is_live();
    std::uint32_t node = 0;
    if (comes && block.holder != 0) node = g_session.holders.at(block.holder).node;
    if (thread != nullptr) {
      if (comes) block.birth_s = thread->birth_s();
      append_device_event(*thread, comes ? EventKind::allocate : EventKind::free, api,
                          space_of(vendor, block.kind), block.device, block.name.key, block.bytes,
                          node);
    }
    comes ? count_in(hook, thread, block) : count_out(hook, thread, block);
    return then;
  });
  publish_device(hook, thread, vendor);
}

void on_graph_destroyed(InHook hook, Vendor vendor, std::uint64_t graph) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  std::uint64_t executable = 0;
  g_state.device_blocks.for_each(hook, [&](DeviceBlock& block) noexcept {
    if (block.name.what != DeviceKey::executable || block.name.vendor != vendor ||
        block.owner != graph)
      return Then::leave;
    executable = block.name.key;
    block.owner = executable;
    return Then::changed;
  });
  executable != 0 ? change_owner(hook, vendor, graph, executable)
                  : release_nodes(hook, vendor, graph);
}

void on_executable_destroyed(InHook hook, Vendor vendor, std::uint64_t executable) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  DeviceBlock entry;
  if (!g_state.device_blocks.remove(hook, {vendor, DeviceKey::executable, executable}, entry))
    return;
  if (entry.owner == executable)
    release_nodes(hook, vendor, executable);  // its graph has ended, too
}

}  // namespace oomrec::recorder
