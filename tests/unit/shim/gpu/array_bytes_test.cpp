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
}  // namespace

TEST_CASE("an array has width × height × depth elements; an extent of 0 counts as 1") {
  const cuda::CUDA_ARRAY_DESCRIPTOR line{100, 0, kFloat, 1};
  CHECK(cuda::bytes_of(&line) == 400);
  const cuda::CUDA_ARRAY_DESCRIPTOR plane{100, 10, kUnsignedInt8, 4};
  CHECK(cuda::bytes_of(&plane) == 4000);
  const cuda::CUDA_ARRAY_DESCRIPTOR_v1 old_plane{100, 10, kUnsignedInt8, 4};
  CHECK(cuda::bytes_of(&old_plane) == 4000);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR cube{100, 10, 3, kFloat, 2, 0};
  CHECK(cuda::bytes_of(&cube) == 24'000);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR_v1 old_cube{100, 10, 3, kFloat, 2, 0};
  CHECK(cuda::bytes_of(&old_cube) == 24'000);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR layered_line{100, 0, 6, kFloat, 1, kLayered};
  CHECK(cuda::bytes_of(&layered_line) == 2400);
}

TEST_CASE("formats that contain all channels") {
  const cuda::CUDA_ARRAY_DESCRIPTOR video{1920, 1080, kNv12, 3};
  CHECK(cuda::bytes_of(&video) == 1920 * 1080 * 3 / 2);
  // Blocks of 4 × 4 elements: 8 bytes each, or 16.
  const cuda::CUDA_ARRAY_DESCRIPTOR small_blocks{5, 4, kBc1, 4};
  CHECK(cuda::bytes_of(&small_blocks) == 2 * 8);
  const cuda::CUDA_ARRAY_DESCRIPTOR blocks{8, 5, kBc7, 4};
  CHECK(cuda::bytes_of(&blocks) == 4 * 16);
}

TEST_CASE("a mipmap's levels halve, its layers do not") {
  const cuda::CUDA_ARRAY3D_DESCRIPTOR square{8, 8, 0, kUnsignedInt8, 1, 0};
  CHECK(cuda::bytes_of(&square, 4) == 64 + 16 + 4 + 1);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR cube{8, 8, 8, kUnsignedInt8, 1, 0};
  CHECK(cuda::bytes_of(&cube, 2) == 512 + 64);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR layers{8, 8, 8, kUnsignedInt8, 1, kLayered};
  CHECK(cuda::bytes_of(&layers, 2) == 512 + 128);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR compressed{8, 8, 0, kBc1, 4, 0};
  CHECK(cuda::bytes_of(&compressed, 4) == 32 + 8 + 8 + 8);
}

TEST_CASE("a sparse array has no memory of its own") {
  const cuda::CUDA_ARRAY3D_DESCRIPTOR sparse{100, 10, 3, kFloat, 2, kSparse};
  CHECK(cuda::bytes_of(&sparse) == 0);
}

TEST_CASE("hostile descriptions: missing, huge, of unknown format") {
  CHECK(cuda::bytes_of(static_cast<const cuda::CUDA_ARRAY_DESCRIPTOR*>(nullptr)) == 0);
  CHECK(hip::bytes_of(nullptr, {1, 1, 1}, 0) == 0);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR endless{SIZE_MAX, SIZE_MAX, SIZE_MAX, kFloat, 4, 0};
  CHECK(cuda::bytes_of(&endless, UINT32_MAX) == SIZE_MAX);
  const cuda::CUDA_ARRAY3D_DESCRIPTOR endless_blocks{SIZE_MAX, 1, 1, kBc7, 4, 0};
  CHECK(cuda::bytes_of(&endless_blocks) == SIZE_MAX);
  const cuda::CUDA_ARRAY_DESCRIPTOR unknown{10, 10, 0x7fff, 1};
  CHECK(cuda::bytes_of(&unknown) == 400);
}

TEST_CASE("HIP specifies the bits of each channel") {
  const hip::hipChannelFormatDesc half4{16, 16, 16, 16, 2};
  CHECK(hip::bytes_of(&half4, {100, 10, 0}, 0) == 8000);
  CHECK(hip::bytes_of(&half4, {8, 8, 4}, kLayered, 2) == (64 + 16) * 4 * 8);
  const hip::HIP_ARRAY3D_DESCRIPTOR cube{100, 10, 3, kFloat, 2, 0};
  CHECK(hip::bytes_of(&cube) == 24'000);
  const hip::HIP_ARRAY_DESCRIPTOR plane{100, 10, kUnsignedInt8, 4};
  CHECK(hip::bytes_of(&plane) == 4000);
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
