// A caching allocator of device memory, like PyTorch's: blocks are parts of the driver's segments,
// and freed blocks are kept. When a new segment fails, it returns free segments to the driver and
// retries, then reports the failure.
//
// One device, one thread. For ctypes: addresses and sizes are integers; an address of 0 is a
// failure.
#include <dlfcn.h>

#include <cstdlib>
#include <map>

#include "tests/fake_torch/c10.h"

namespace {

using Address = unsigned long long;
constexpr std::size_t kMiB = 1 << 20;
constexpr c10::Device kDevice{1, 0};

template <class Function>
Function* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

struct Piece {
  std::size_t bytes;
  Address segment;
  bool used;
};
std::map<Address, Piece> g_pieces;
std::map<Address, std::size_t> g_segments;
std::size_t g_allocated = 0, g_reserved = 0, g_most = ~std::size_t{0};
int g_version = 2;  // PyTorch's version, which determines the called functions of libc10

void report(Address block, std::int64_t change) {
  void* const at = reinterpret_cast<void*>(block);
  if (g_version == 1) {
    c10::reportMemoryUsageToProfiler(at, change, static_cast<std::int64_t>(g_allocated),
                                     static_cast<std::int64_t>(g_reserved), kDevice);
  } else {
    c10::reportMemoryUsageToProfiler(at, change, g_allocated, g_reserved, kDevice);
  }
}

void report_failure(std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (g_version == 1) {
    c10::reportOutOfMemoryToProfiler(wanted, static_cast<std::int64_t>(g_allocated),
                                     static_cast<std::int64_t>(g_reserved), kDevice);
  } else if (g_version == 2) {
    c10::reportOutOfMemoryToProfiler(wanted, g_allocated, g_reserved, kDevice);
  } else {
    c10::reportOutOfMemoryToProfiler(bytes, g_allocated, g_reserved, kDevice);
  }
}

// The best-fitting free part.
std::map<Address, Piece>::iterator find_piece(std::size_t bytes) {
  auto best = g_pieces.end();
  for (auto at = g_pieces.begin(); at != g_pieces.end(); ++at) {
    const bool fits = !at->second.used && at->second.bytes >= bytes;
    if (fits && (best == g_pieces.end() || at->second.bytes < best->second.bytes)) best = at;
  }
  return best;
}

bool add_segment(std::size_t bytes) {
  static auto* const allocate = driver<int(Address*, std::size_t)>("cuMemAlloc_v2");
  const std::size_t least = bytes < kMiB ? 2 * kMiB : bytes < 10 * kMiB ? 20 * kMiB : bytes;
  const std::size_t whole = (least + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  Address at = 0;
  if (g_reserved + whole > g_most || allocate(&at, whole) != 0) return false;
  g_segments[at] = whole;
  g_pieces[at] = {whole, at, false};
  g_reserved += whole;
  return true;
}

void flush() {
  static auto* const release = driver<int(Address)>("cuMemFree_v2");
  for (auto segment = g_segments.begin(); segment != g_segments.end();) {
    const auto piece = g_pieces.find(segment->first);
    if (piece->second.used || piece->second.bytes != segment->second) {
      ++segment;
      continue;
    }
    release(segment->first);
    g_reserved -= segment->second;
    g_pieces.erase(piece);
    segment = g_segments.erase(segment);
  }
}

void merge_with_next(std::map<Address, Piece>::iterator piece) {
  const auto next = std::next(piece);
  if (next == g_pieces.end() || next->second.used || piece->second.used ||
      next->second.segment != piece->second.segment)
    return;
  piece->second.bytes += next->second.bytes;
  g_pieces.erase(next);
}

}  // namespace

extern "C" {

void torch_start(int version) {
  g_version = version;
  void* context = nullptr;
  driver<int(unsigned)>("cuInit")(0);
  driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
  driver<int(void*)>("cuCtxSetCurrent")(context);
  c10::memoryProfilingEnabled();  // like a first tensor on the CPU
}

// Like set_per_process_memory_fraction: beyond it the driver is not called.
void torch_reserve_at_most(std::size_t bytes) { g_most = bytes; }

Address torch_allocate(std::size_t wanted) {
  const std::size_t bytes = (wanted + 511) / 512 * 512;
  auto piece = find_piece(bytes);
  if (piece == g_pieces.end()) {
    if (!add_segment(bytes)) {
      flush();
      if (!add_segment(bytes)) {
        report_failure(bytes);
        return 0;
      }
    }
    piece = find_piece(bytes);
  }
  const Address at = piece->first;
  if (piece->second.bytes > bytes) {
    g_pieces[at + bytes] = {piece->second.bytes - bytes, piece->second.segment, false};
    piece->second.bytes = bytes;
  }
  piece->second.used = true;
  g_allocated += bytes;
  report(at, static_cast<std::int64_t>(bytes));
  return at;
}

void torch_free(Address block) {
  auto piece = g_pieces.find(block);
  const std::size_t bytes = piece->second.bytes;
  g_allocated -= bytes;
  piece->second.used = false;
  merge_with_next(piece);
  if (piece != g_pieces.begin()) merge_with_next(std::prev(piece));
  report(block, -static_cast<std::int64_t>(bytes));
}

std::size_t torch_allocated() { return g_allocated; }
std::size_t torch_reserved() { return g_reserved; }
}
