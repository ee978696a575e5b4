// The sizes of CUDA and HIP arrays.
#include <doctest/doctest.h>

#include <cstdint>

#include "shim/gpu/cuda_types.h"
#include "shim/gpu/hip_types.h"

namespace cuda = oomrec::shim::cuda;
namespace hip = oomrec::shim::hip;

namespace {
constexpr int kUnsignedInt8 = 0x01;
constexpr int kFloat = 0x20;
constexpr int kBc1 = 0x91;
constexpr int kBc7 = 0x9d;
constexpr int kNv12 = 0xb0;
constexpr unsigned kLayered = 1;
constexpr unsigned kSparse = 0x40;

using Flat = cuda::CUDA_ARRAY_DESCRIPTOR;
using Cube = cuda::CUDA_ARRAY3D_DESCRIPTOR;

std::size_t bytes(const auto& array, unsigned levels = 1) { return bytes_of(&array, levels); }
}  // namespace

TEST_CASE_TEMPLATE("an array has width × height × depth elements", Array, Flat,
                   cuda::CUDA_ARRAY_DESCRIPTOR_v1, hip::HIP_ARRAY_DESCRIPTOR) {
  CHECK(bytes(Array{100, 10, kUnsignedInt8, 4}) == 4000);
  CHECK(bytes(Array{100, 0, kFloat, 1}) == 400);  // an extent of 0 counts as 1
}

TEST_CASE_TEMPLATE("and so has one of three dimensions, or of layers", Array, Cube,
                   cuda::CUDA_ARRAY3D_DESCRIPTOR_v1, hip::HIP_ARRAY3D_DESCRIPTOR) {
  CHECK(bytes(Array{100, 10, 3, kFloat, 2, 0}) == 24'000);
  CHECK(bytes(Array{100, 0, 6, kFloat, 1, kLayered}) == 2400);
}

TEST_CASE("formats that contain all channels") {
  CHECK(bytes(Flat{1920, 1080, kNv12, 3}) == 1920 * 1080 * 3 / 2);
  // Blocks of 4 × 4 elements: 8 bytes each, or 16.
  CHECK(bytes(Flat{5, 4, kBc1, 4}) == 2 * 8);
  CHECK(bytes(Flat{8, 5, kBc7, 4}) == 4 * 16);
}

TEST_CASE("a mipmap's levels halve, its layers do not") {
  CHECK(bytes(Cube{8, 8, 0, kUnsignedInt8, 1, 0}, 4) == 64 + 16 + 4 + 1);
  CHECK(bytes(Cube{8, 8, 8, kUnsignedInt8, 1, 0}, 2) == 512 + 64);
  CHECK(bytes(Cube{8, 8, 8, kUnsignedInt8, 1, kLayered}, 2) == 512 + 128);
  CHECK(bytes(Cube{8, 8, 0, kBc1, 4, 0}, 4) == 32 + 8 + 8 + 8);
}

TEST_CASE("a sparse array has no memory of its own") {
  CHECK(bytes(Cube{100, 10, 3, kFloat, 2, kSparse}) == 0);
}

TEST_CASE("hostile descriptions: missing, huge, of unknown format") {
  CHECK(cuda::bytes_of(static_cast<const Flat*>(nullptr)) == 0);
  CHECK(hip::bytes_of(nullptr, {1, 1, 1}, 0) == 0);
  CHECK(bytes(Cube{SIZE_MAX, SIZE_MAX, SIZE_MAX, kFloat, 4, 0}, UINT32_MAX) == SIZE_MAX);
  CHECK(bytes(Cube{SIZE_MAX, 1, 1, kBc7, 4, 0}) == SIZE_MAX);
  CHECK(bytes(Flat{10, 10, 0x7fff, 1}) == 400);
}

TEST_CASE("HIP specifies the bits of each channel") {
  const hip::hipChannelFormatDesc half4{16, 16, 16, 16, 2};
  CHECK(hip::bytes_of(&half4, {100, 10, 0}, 0) == 8000);
  CHECK(hip::bytes_of(&half4, {8, 8, 4}, kLayered, 2) == (64 + 16) * 4 * 8);
}

TEST_CASE("the device of a location") {
  const cuda::CUmemLocation device{cuda::CU_MEM_LOCATION_TYPE_DEVICE, 3};
  CHECK(cuda::device_of(&device) == 3);
  const cuda::CUmemLocation domain{cuda::CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x0201};
  CHECK(cuda::device_of(&domain) == 1);
  const cuda::CUmemLocation host{2, 0};
  CHECK(cuda::device_of(&host) == -1);
  CHECK(cuda::device_of(nullptr) == -1);
  const hip::hipMemLocation hip_device{hip::hipMemLocationTypeDevice, 3};
  CHECK(hip::device_of(&hip_device) == 3);
  const hip::hipMemLocation hip_host{2, 0};
  CHECK(hip::device_of(&hip_host) == -1);
  CHECK(hip::device_of(nullptr) == -1);
}
