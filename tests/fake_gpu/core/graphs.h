// Graphs, as far as they hold memory: an allocation node reserves an address when it is added, and
// has memory from a launch to a free. As CUDA documents for such graphs, they cannot be cloned or
// be a child, have one executable at a time, and cannot be launched again while one of their blocks
// is live.
#pragma once

#include <cstddef>

#include "tests/fake_gpu/core/blocks.h"

namespace fake_gpu {

struct Graph;

int create_graph(void** out);
int destroy_graph(void* graph);
int clone_graph(void** out, void* original);
int instantiate(void** out, void* graph, unsigned long long flags);
int launch(void* exec, void* stream);
int destroy_exec(void* exec);
int update_exec(void* exec, void* graph);

// Nodes. node: may be null. type: as numbered by CU_GRAPH_NODE_TYPE_* and hipGraphNodeType*.
int add_allocation_node(void** node, void* graph, Address* out, std::size_t bytes, int device);
int add_free_node(void** node, void* graph, Address address);
int add_child_node(void** node, void* graph, void* child);
int add_other_node(void** node, void* graph, int type);
int node_type(void* node, int* type);
int node_count(void* graph, void** nodes, std::size_t* count);

// Nodes added by a capturing stream.
int add_allocation(Graph* graph, Address* out, std::size_t bytes, int device);
int add_free(Graph* graph, Address address);
Graph* find_graph(void* graph);
unsigned long long graph_id(const Graph* graph);

int free_launched(Block* block);  // a graph's block, freed outside of graphs

}  // namespace fake_gpu
