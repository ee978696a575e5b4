// The tables of GPU functions: complete, without duplicates, and each function under its base name.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/functions.h"
#include "shim/gpu/cuda_functions.h"
#include "shim/gpu/hip_functions.h"

using oomrec::Api;

namespace {

struct Row {
  std::string_view name;
  Api api;
};
#define X(name, api, ...) Row{#name, Api::api},
constexpr auto kCuda = std::to_array<Row>({OOMREC_CUDA_FUNCTIONS(X)});
constexpr auto kHip = std::to_array<Row>({OOMREC_HIP_FUNCTIONS(X)});
#undef X

#define X(name, ...) Api::name,
constexpr auto kCudaApis = std::to_array<Api>({OOMREC_CUDA_APIS(X)});
constexpr auto kHipApis = std::to_array<Api>({OOMREC_HIP_APIS(X)});
#undef X

// Functions that allocate, map, free or look up, according to the vendors' documentation. Rows for
// functions that can only fail are not listed. Without the vendor's prefix.
constexpr std::string_view kBothNames = R"(
MemAllocPitch MemAllocHost MemPoolCreate MemPoolDestroy MemPoolTrimTo MemCreate
MemImportFromShareableHandle MemRetainAllocationHandle MemRelease MemAddressReserve
MemAddressFree MemMap MemUnmap ArrayCreate Array3DCreate ArrayDestroy MipmappedArrayCreate
MipmappedArrayDestroy IpcOpenMemHandle IpcCloseMemHandle ImportExternalMemory
GraphAddMemAllocNode GraphAddMemFreeNode GetProcAddress
)";
constexpr std::string_view kCudaNames = R"(
MemAlloc MemAlloc_v2 MemAllocPitch_v2 MemAllocManaged MemFree MemFree_v2 MemAllocHost_v2
MemHostAlloc MemFreeHost MemHostRegister MemHostRegister_v2 MemHostUnregister MemAllocAsync
MemAllocAsync_ptsz MemAllocFromPoolAsync MemAllocFromPoolAsync_ptsz MemFreeAsync
MemFreeAsync_ptsz MemPoolImportFromShareableHandle MemPoolImportPointer MemMapArrayAsync
MemMapArrayAsync_ptsz ArrayCreate_v2 Array3DCreate_v2 MulticastCreate MulticastBindMem
MulticastBindAddr MulticastUnbind IpcOpenMemHandle_v2 ExternalMemoryGetMappedBuffer
ExternalMemoryGetMappedMipmappedArray DestroyExternalMemory GraphAddNode GraphAddNode_v2
DeviceGraphMemTrim CtxDestroy CtxDestroy_v2 DevicePrimaryCtxReset DevicePrimaryCtxReset_v2
DevicePrimaryCtxRelease DevicePrimaryCtxRelease_v2 GetProcAddress_v2
)";
constexpr std::string_view kHipNames = R"(
Malloc ExtMallocWithFlags MallocManaged MallocPitch Malloc3D MallocHost HostMalloc HostAlloc
HostRegister MallocArray Malloc3DArray MallocMipmappedArray MallocAsync MallocFromPoolAsync
ExtHostAlloc Free FreeHost HostFree HostUnregister FreeArray FreeMipmappedArray FreeAsync
)";

std::vector<std::string_view> names_of(const auto& rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

bool contains(const auto& things, const auto& thing) {
  return std::find(std::begin(things), std::end(things), thing) != std::end(things);
}

void check_complete(const auto& rows, const std::string& prefix, std::string_view of_vendor) {
  const std::vector<std::string_view> names = names_of(rows);
  std::istringstream wanted{std::string{kBothNames}.append(of_vendor)};
  for (std::string name; wanted >> name;)
    CHECK_MESSAGE(contains(names, prefix + name), prefix << name << " is not in the table");
}

void check_unique(const auto& rows) {
  std::vector<std::string_view> names = names_of(rows);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  CHECK_MESSAGE(twice == names.end(), names.size()
                                          << " rows; twice: "
                                          << std::string{twice == names.end() ? "" : *twice});
}

// What may follow the base name in an exported name: a version, a per-thread stream.
bool is_suffix(std::string_view text) {
  for (const std::string_view suffix : {"_v2", "_v3", "_v4"})
    if (text.starts_with(suffix)) text.remove_prefix(suffix.size());
  return text.empty() || text == "_ptsz" || text == "_spt";
}

void check_apis(const auto& rows, const auto& apis) {
  for (const Row& row : rows) {
    const std::string_view base = oomrec::name_of(row.api);
    const bool fits = row.name.starts_with(base) && is_suffix(row.name.substr(base.size()));
    CHECK_MESSAGE(fits, std::string{row.name} << " is counted as " << std::string{base});
    CHECK_MESSAGE(contains(apis, row.api), std::string{base} << " is another vendor's");
  }
  for (const Api api : apis) {
    const bool used =
        std::any_of(rows.begin(), rows.end(), [api](const Row& row) { return row.api == api; });
    CHECK_MESSAGE(used, std::string{oomrec::name_of(api)} << " has no function");
  }
}

}  // namespace

TEST_CASE("every function that allocates or frees is in the table") {
  check_complete(kCuda, "cu", kCudaNames);
  check_complete(kHip, "hip", kHipNames);
}

TEST_CASE("no function is in the table twice") {
  check_unique(kCuda);
  check_unique(kHip);
}

TEST_CASE("functions are counted under their base names, and every base name has a function") {
  check_apis(kCuda, kCudaApis);
  check_apis(kHip, kHipApis);
}

TEST_CASE("numbers of functions are part of the recording format") {
  CHECK(static_cast<int>(Api::request) == 26);
  CHECK(static_cast<int>(kCudaApis.front()) == 64);
  CHECK(static_cast<int>(kHipApis.front()) == 256);
  CHECK(name_of(kHipApis.back()) == "hipGetDriverEntryPoint");
  CHECK(name_of(Api::end_of_host) == "unknown");
}
