// Each function of CUDA's table, once: graphs.
#include "tests/gpu/cuda_trials.h"

namespace oomrec::gpu_trial {

// --- Graphs

MAY_BE_REFUSED(cuGraphCreate, CUgraph, (&out, 0), f.cuGraphDestroy(out))
MAY_BE_REFUSED(cuDeviceGraphMemTrim, int, (kOrdinal), 0)

OOMREC_TRIAL(cuGraphClone) {
  const Graph original;
  CUgraph out = nullptr;
  may_fail({kMain}, [&] { return f.cuGraphClone(&out, original.graph); });
  need(f.cuGraphDestroy(out));
}
OOMREC_TRIAL(cuGraphAddChildGraphNode) {
  const Graph child;
  Graph graph;
  may_fail({kMain}, [&] {
    return f.cuGraphAddChildGraphNode(&graph.node, graph.graph, nullptr, 0, child.graph);
  });
}

namespace {

CUgraphNodeParams allocation_params() {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc = {kPoolProps, nullptr, 0, kBytes, 0};
  return params;
}

}  // namespace

OOMREC_TRIAL(cuGraphAddMemAllocNode) {
  Graph graph;
  CUDA_MEM_ALLOC_NODE_PARAMS params{kPoolProps, nullptr, 0, kBytes, 0};
  adds_a_block({kMain}, params.dptr, [&] {
    return f.cuGraphAddMemAllocNode(&graph.node, graph.graph, nullptr, 0, &params);
  });
}

#define ADDS_A_NODE(name, ...)                                                            \
  OOMREC_TRIAL(name) {                                                                    \
    Graph graph;                                                                          \
    CUgraphNodeParams params = allocation_params();                                       \
    adds_a_block({kMain}, params.alloc.dptr,                                              \
                 [&] { return f.name(&graph.node, graph.graph, __VA_ARGS__, &params); }); \
  }
ADDS_A_NODE(cuGraphAddNode, nullptr, 0)
ADDS_A_NODE(cuGraphAddNode_v2, nullptr, nullptr, 0)
ADDS_A_NODE(cuGraphAddNode_v3, nullptr, nullptr, 0)

OOMREC_TRIAL(cuGraphAddMemFreeNode) {
  Graph graph;
  const CUdeviceptr block = graph.add_block();
  may_fail({kMain},
           [&] { return f.cuGraphAddMemFreeNode(&graph.node, graph.graph, nullptr, 0, block); });
}

#define INSTANTIATES(name, arguments)                    \
  OOMREC_TRIAL(name) {                                   \
    const Graph graph;                                   \
    CUgraphExec out = nullptr;                           \
    may_fail({kMain}, [&] { return f.name arguments; }); \
    need(f.cuGraphExecDestroy(out));                     \
  }
namespace {
// CUDA_GRAPH_INSTANTIATE_PARAMS: flags, stream, failed node, result.
struct InstantiateParams {
  cuuint64_t flags = 0;
  CUstream stream = nullptr;
  CUgraphNode culprit = nullptr;
  int result = 0;
  CUDA_GRAPH_INSTANTIATE_PARAMS* get() {
    return reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(this);
  }
};
}  // namespace
INSTANTIATES(cuGraphInstantiate, (&out, graph.graph, nullptr, nullptr, 0))
INSTANTIATES(cuGraphInstantiate_v2, (&out, graph.graph, nullptr, nullptr, 0))
INSTANTIATES(cuGraphInstantiateWithFlags, (&out, graph.graph, 0))
INSTANTIATES(cuGraphInstantiateWithParams, (&out, graph.graph, InstantiateParams{}.get()))
INSTANTIATES(cuGraphInstantiateWithParams_ptsz, (&out, graph.graph, InstantiateParams{}.get()))

namespace {

template <class Upload>
void uploads(Upload upload) {
  Graph graph;
  const CUgraphExec exec = graph.instantiate();
  may_fail({kMain}, [&] { return upload(exec, nullptr); });
  need(f.cuGraphExecDestroy(exec));
}

template <class Launch>
void launches(Launch launch) {
  Graph graph;
  const CUdeviceptr block = graph.add_block();
  const CUgraphExec exec = graph.instantiate();
  gives({kMain, kBytes, 0}, block, [&] { return launch(exec, nullptr); });
  need(f.cuMemFree_v2(block));
  need(f.cuGraphExecDestroy(exec));
}

}  // namespace

OOMREC_TRIAL(cuGraphUpload) { uploads(f.cuGraphUpload); }
OOMREC_TRIAL(cuGraphUpload_ptsz) { uploads(f.cuGraphUpload_ptsz); }
OOMREC_TRIAL(cuGraphLaunch) { launches(f.cuGraphLaunch); }
OOMREC_TRIAL(cuGraphLaunch_ptsz) { launches(f.cuGraphLaunch_ptsz); }

OOMREC_TRIAL(cuGraphExecDestroy) {
  Graph graph;
  const CUgraphExec exec = graph.instantiate();
  passes([&] { return f.cuGraphExecDestroy(exec); });
}
OOMREC_TRIAL(cuGraphDestroy) {
  CUgraph graph = nullptr;
  need(f.cuGraphCreate(&graph, 0));
  passes([&] { return f.cuGraphDestroy(graph); });
}

}  // namespace oomrec::gpu_trial
