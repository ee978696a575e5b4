// A CUDA driver of one device of 1 GiB that does not exist. The simulated program allocates from
// it, and the recorder queries it.
//
// It is a library without dependencies, embedded in the command (driver_image.S.in), which only the
// simulated process loads. It only counts: its addresses must not be accessed. It is
// single-threaded.
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2;
constexpr std::size_t kTotalBytes = std::size_t{1} << 30;
constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40;
constexpr int kReservedBytes = 5;  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
constexpr int kVersion = 12000;

struct Block {
  std::size_t bytes;
  bool in_use;
};
constexpr std::size_t kMostBlocks = 64;

struct State {
  void* context;  // of the calling thread
  std::size_t used_bytes;
  std::size_t pool_bytes;
  std::size_t pool_blocks;
  Block pool[kMostBlocks];  // never returned to the device
};
State g_state;
char g_context, g_pool;  // handles are their addresses

// Addresses identify blocks: each has a range as large as the device.
std::uint64_t address_of(std::size_t number) { return kFirstAddress + number * kTotalBytes; }

bool take(std::size_t bytes) {
  if (bytes > kTotalBytes - g_state.used_bytes) return false;
  g_state.used_bytes += bytes;
  return true;
}

// A free block of the pool that is large enough, else a new one.
std::size_t find_in_pool(std::size_t bytes) {
  std::size_t at = 0;
  while (at < g_state.pool_blocks && (g_state.pool[at].in_use || g_state.pool[at].bytes < bytes)) {
    ++at;
  }
  return at;
}

void copy_text(const char* from, char* to, int size) {
  for (int i = 0; i < size; ++i) {
    to[i] = i + 1 < size ? *from : '\0';
    if (*from != '\0') ++from;
  }
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) { return *version = kVersion, kSuccess; }
int cuDeviceGet(int* device, int ordinal) {
  return *device = 0, ordinal == 0 ? kSuccess : kInvalidValue;
}
int cuDeviceGetName(char* name, int size, int) {
  return copy_text("simulated device", name, size), kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &g_context, kSuccess; }
int cuCtxSetCurrent(void* context) { return g_state.context = context, kSuccess; }
int cuCtxGetCurrent(void** context) { return *context = g_state.context, kSuccess; }
int cuCtxGetDevice(int* device) { return *device = 0, kSuccess; }

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *total = kTotalBytes;
  *free = kTotalBytes - g_state.used_bytes;
  return kSuccess;
}

int cuMemAlloc_v2(std::uint64_t* block, std::size_t bytes) {
  static std::size_t blocks = kMostBlocks;  // numbered after those of the pool
  if (!take(bytes)) return kOutOfMemory;
  *block = address_of(blocks++);
  return kSuccess;
}

int cuDeviceGetMemPool(void** pool, int) { return *pool = &g_pool, kSuccess; }

int cuMemPoolGetAttribute(void*, int attribute, void* value) {
  if (attribute != kReservedBytes) return kInvalidValue;
  *static_cast<std::uint64_t*>(value) = g_state.pool_bytes;
  return kSuccess;
}

int cuMemAllocAsync(std::uint64_t* block, std::size_t bytes, void*) {
  const std::size_t at = find_in_pool(bytes);
  if (at == kMostBlocks) return kOutOfMemory;
  if (at == g_state.pool_blocks) {
    if (!take(bytes)) return kOutOfMemory;
    g_state.pool[at].bytes = bytes;
    g_state.pool_bytes += bytes;
    ++g_state.pool_blocks;
  }
  g_state.pool[at].in_use = true;
  *block = address_of(at);
  return kSuccess;
}

int cuMemFreeAsync(std::uint64_t block, void*) {
  g_state.pool[(block - kFirstAddress) / kTotalBytes].in_use = false;
  return kSuccess;
}

}  // extern "C"
