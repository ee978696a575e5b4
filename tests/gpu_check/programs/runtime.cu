// A program of the CUDA runtime: a kernel, a captured graph, then blocks until one fails.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__global__ void increment(int* numbers) { numbers[threadIdx.x] += 1; }

static bool kernel_works() {
  int* numbers = nullptr;
  int came[64];
  if (cudaMalloc(&numbers, sizeof came) != cudaSuccess) return false;
  cudaMemset(numbers, 0, sizeof came);
  increment<<<1, 64>>>(numbers);
  cudaMemcpy(came, numbers, sizeof came, cudaMemcpyDeviceToHost);
  cudaFree(numbers);
  for (int number : came)
    if (number != 1) return false;
  return true;
}

static bool graph_works() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  void* block = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  cudaMallocAsync(&block, 1 << 20, stream);
  cudaMemsetAsync(block, 1, 1 << 20, stream);
  cudaFreeAsync(block, stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return false;
  if (cudaGraphInstantiateWithFlags(&executable, graph, 0) != cudaSuccess) return false;
  cudaGraphLaunch(executable, stream);
  return cudaStreamSynchronize(stream) == cudaSuccess;
}

static cudaError_t fill(std::vector<void*>& held, size_t step, size_t bound) {
  while (held.size() * step <= bound) {
    void* block = nullptr;
    const cudaError_t result = cudaMalloc(&block, step);
    if (result != cudaSuccess) return result;
    held.push_back(block);
  }
  return cudaSuccess;
}

int main() {
  const bool same = kernel_works() && graph_works();
  size_t free_bytes = 0, total = 0;
  cudaMemGetInfo(&free_bytes, &total);
  std::vector<void*> held;
  const size_t step = 256u << 20;
  const cudaError_t result = fill(held, step, free_bytes);
  for (void* block : held) cudaFree(block);
  std::printf("{\"held\": %zu, \"same\": %s}\n", held.size() * step, same ? "true" : "false");
  return result == cudaErrorMemoryAllocation ? 0 : 1;
}
