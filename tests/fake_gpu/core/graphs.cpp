#include "tests/fake_gpu/core/graphs.h"

#include "tests/fake_gpu/core/devices.h"
#include "tests/fake_gpu/core/pools.h"
#include "tests/fake_gpu/core/result.h"
#include "tests/fake_gpu/core/streams.h"
#include "tests/fake_gpu/core/table.h"

namespace fake_gpu {

struct Node {
  int type;
  Block* block;  // allocated by this node
  Address address;
  Node* next;
};

struct Graph {
  Node* first;
  Node* last;
  unsigned nodes;
  bool has_memory;
  bool ended;  // destroyed, but an executable still needs its nodes
  unsigned executables;
  unsigned long long id;
};

namespace {

enum NodeType { graph_node = 4, allocation_node = 10, free_node = 11 };
constexpr unsigned long long kAutoFreeOnLaunch = 1;

struct Exec {
  Graph* graph;
  unsigned nodes;  // those that existed when it was created
  unsigned long long flags;
};

Table<Graph, 1024> g_graphs;
Table<Node, 16384> g_nodes;
Table<Exec, 1024> g_execs;
unsigned long long g_last_id = 0;

int add_node(Graph* graph, Node* node, void** out) {
  (graph->last == nullptr ? graph->first : graph->last->next) = node;
  graph->last = node;
  ++graph->nodes;
  if (out != nullptr) *out = node;
  return success;
}

// Releases nodes and blocks that are no longer needed.
void sweep(Graph* graph) {
  if (!graph->ended || graph->executables != 0) return;
  for (Node* node = graph->first; node != nullptr;) {
    Node* const next = node->next;
    if (Block* const block = node->block) {
      block->owned = false;
      if (!block->live) end_block(block);
    }
    g_nodes.give_back(node);
    node = next;
  }
  g_graphs.give_back(graph);
}

void make_dead(Block* block) {
  give_to(block->pool, block->bytes);
  block->live = false;
  close_pages(block->address, block->bytes);
  open_pages(block->address, block->bytes);
}

template <class Action>
void for_nodes(const Exec* exec, Action action) {
  Node* node = exec->graph->first;
  for (unsigned i = 0; i < exec->nodes; ++i, node = node->next) action(*node);
}

Block* live_graph_block(Address address) {
  Block* const block = find_block(address, static_cast<unsigned>(Kind::graph));
  return block != nullptr && block->live ? block : nullptr;
}

}  // namespace

Graph* find_graph(void* handle) {
  Graph* const graph = g_graphs.find(handle);
  return graph == nullptr || graph->ended ? nullptr : graph;
}

unsigned long long graph_id(const Graph* graph) { return graph->id; }

int create_graph(void** out) {
  if (out == nullptr) return invalid_value;
  Graph* const graph = g_graphs.take();
  if (graph == nullptr) return out_of_memory;
  graph->id = ++g_last_id;
  *out = graph;
  return success;
}

int destroy_graph(void* handle) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr) return invalid_value;
  graph->ended = true;
  sweep(graph);
  return success;
}

int clone_graph(void** out, void* handle) {
  const Graph* const original = find_graph(handle);
  if (original == nullptr || out == nullptr) return invalid_value;
  if (original->has_memory) return not_supported;
  const int result = create_graph(out);
  for (Node* node = original->first; result == success && node != nullptr; node = node->next) {
    const int added = add_other_node(nullptr, *out, node->type);
    if (added != success) return added;
  }
  return result;
}

int instantiate(void** out, void* handle, unsigned long long flags) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr || out == nullptr) return invalid_value;
  if (graph->has_memory && graph->executables != 0) return not_supported;
  Exec* const exec = g_execs.take();
  if (exec == nullptr) return out_of_memory;
  *exec = {graph, graph->nodes, flags};
  ++graph->executables;
  *out = exec;
  return success;
}

int launch(void* handle, void* stream) {
  const Exec* const exec = g_execs.find(handle);
  if (exec == nullptr || !is_stream(stream)) return invalid_value;
  bool still_live = false;
  for_nodes(exec, [&](const Node& node) {
    if (node.block == nullptr || !node.block->live) return;
    if ((exec->flags & kAutoFreeOnLaunch) != 0)
      make_dead(node.block);
    else
      still_live = true;
  });
  if (still_live) return invalid_value;
  int result = success;
  for_nodes(exec, [&](const Node& node) {
    if (result != success) return;
    if (node.block != nullptr) {
      if (take_from(node.block->pool, node.block->bytes))
        node.block->live = true;
      else
        result = out_of_memory;
    } else if (node.type == free_node) {
      if (Block* const block = live_graph_block(node.address))
        make_dead(block);
      else
        result = invalid_value;
    }
  });
  if (result != success)  // no node has run
    for_nodes(exec, [](const Node& node) {
      if (node.block != nullptr && node.block->live) make_dead(node.block);
    });
  return result;
}

int destroy_exec(void* handle) {
  Exec* const exec = g_execs.find(handle);
  if (exec == nullptr) return invalid_value;
  Graph* const graph = exec->graph;
  g_execs.give_back(exec);
  --graph->executables;
  sweep(graph);
  return success;
}

int update_exec(void* handle, void* graph) {
  const Exec* const exec = g_execs.find(handle);
  const Graph* const changed = find_graph(graph);
  if (exec == nullptr || changed == nullptr || changed->has_memory) return invalid_value;
  return exec->nodes == changed->nodes ? success : invalid_value;
}

int add_other_node(void** out, void* handle, int type) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr) return invalid_value;
  Node* const node = g_nodes.take();
  if (node == nullptr) return out_of_memory;
  node->type = type;
  return add_node(graph, node, out);
}

int add_child_node(void** node, void* graph, void* child_handle) {
  const Graph* const child = find_graph(child_handle);
  if (child == nullptr) return invalid_value;
  return child->has_memory ? not_supported : add_other_node(node, graph, graph_node);
}

int add_allocation_node(void** out, void* handle, Address* address, std::size_t bytes, int device) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr || address == nullptr || bytes == 0) return invalid_value;
  if (!is_device(device)) return invalid_value;
  Node* const node = g_nodes.take();
  Block* const block = node == nullptr ? nullptr : new_block(Kind::graph, bytes, device);
  if (block == nullptr) {
    if (node != nullptr) g_nodes.give_back(node);
    return out_of_memory;
  }
  block->pool = graph_pool(device);
  block->owned = true;
  node->type = allocation_node;
  node->block = block;
  graph->has_memory = true;
  *address = block->address;
  return add_node(graph, node, out);
}

int add_free_node(void** out, void* handle, Address address) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr) return invalid_value;
  if (find_block(address, static_cast<unsigned>(Kind::graph)) == nullptr) return invalid_value;
  Node* const node = g_nodes.take();
  if (node == nullptr) return out_of_memory;
  node->type = free_node;
  node->address = address;
  graph->has_memory = true;
  return add_node(graph, node, out);
}

int add_allocation(Graph* graph, Address* out, std::size_t bytes, int device) {
  return add_allocation_node(nullptr, graph, out, bytes, device);
}

int add_free(Graph* graph, Address address) { return add_free_node(nullptr, graph, address); }

int node_type(void* handle, int* type) {
  const Node* const node = g_nodes.find(handle);
  if (node == nullptr || type == nullptr) return invalid_value;
  *type = node->type;
  return success;
}

int node_count(void* handle, void** nodes, std::size_t* count) {
  Graph* const graph = find_graph(handle);
  if (graph == nullptr || count == nullptr) return invalid_value;
  std::size_t written = 0;
  for (Node* node = graph->first; nodes != nullptr && node != nullptr; node = node->next)
    if (written < *count) nodes[written++] = node;
  *count = nodes == nullptr ? graph->nodes : written;
  return success;
}

int free_launched(Block* block) {
  if (!block->live) return invalid_value;
  make_dead(block);
  if (!block->owned) end_block(block);
  return success;
}

}  // namespace fake_gpu
