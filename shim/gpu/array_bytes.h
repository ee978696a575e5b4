// The size of a CUDA or HIP array, from its description.
//
// The driver's padding and tiling are unknown: this is the minimum.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>

namespace oomrec::shim::gpu {

struct ArrayShape {
  std::size_t width = 0;   // elements
  std::size_t height = 0;  // 0: one-dimensional
  std::size_t depth = 0;   // 0: two-dimensional; number of layers if the flags say so
  unsigned flags = 0;
};

// Both vendors' values: CUDA_ARRAY3D_… and hipArray….
inline constexpr unsigned kArrayLayered = 0x01;
inline constexpr unsigned kArrayCubemap = 0x04;
inline constexpr unsigned kArraySparse = 0x40;           // gets memory later, in pieces
inline constexpr unsigned kArrayDeferredMapping = 0x80;  // gets memory later, in one piece

// The formats of CUarray_format; hipArray_Format has the first eight, with the same values. An
// unknown format counts as 32 bits: in a recording a guess is more useful than 0.
constexpr std::size_t element_bits(unsigned format, std::size_t channels) noexcept {
  // clang-format off
  switch (format) {
    // One channel.
    case 0x01: case 0x08:            return 8 * channels;   // INT8
    case 0x02: case 0x09: case 0x10: return 16 * channels;  // INT16, HALF
    case 0x03: case 0x0a: case 0x20: return 32 * channels;  // INT32, FLOAT
    // All channels.
    case 0x91: case 0x92: case 0x97: case 0x98: return 4;   // BC1, BC4
    case 0x93: case 0x94: case 0x95: case 0x96: case 0x99: case 0x9a: case 0x9b: case 0x9c:
    case 0x9d: case 0x9e: case 0xc0: case 0xc6: return 8;   // BC2, 3, 5, 6H, 7; NORM_INT8X1
    case 0xb0: case 0x53: case 0x59: return 12;             // 4:2:0 in 8 bits
    case 0xa2: case 0xa5: case 0x51: case 0x55: case 0x5b:  // 4:2:2 in 8 bits
    case 0xc1: case 0xc3: case 0xc7: case 0xc9: return 16;  // NORM_INT8X2, INT16X1
    case 0x9f: case 0xa1: case 0x54: case 0x5a:             // 4:2:0 in 16 bits
    case 0xb2: case 0xb4: case 0x52: case 0x57: case 0x5d: return 24;  // 4:4:4 in 8 bits
    case 0xb3: case 0xb5: case 0x58: case 0x5e: return 48;             // 4:4:4 in 16 bits
    case 0xb1: case 0xc5: case 0xcb: return 64;             // Y416, NORM_INT16X4
    default: return 32;
  }
  // clang-format on
}

// Stored as blocks of 4 × 4 elements.
constexpr bool is_block_compressed(unsigned format) noexcept {
  return format >= 0x91 && format <= 0x9e;
}

// One level of a mipmap, or an array.
constexpr std::size_t level_bytes(ArrayShape shape, std::size_t bits, bool compressed) noexcept {
  const auto units = [compressed](std::size_t n) {
    if (n == 0) return std::size_t{1};
    return compressed ? n / 4 + (n % 4 != 0) : n;
  };
  std::size_t total = compressed ? 4 * 4 * bits : bits;
  for (const std::size_t n : {units(shape.width), units(shape.height), shape.depth}) {
    if (n != 0 && __builtin_mul_overflow(total, n, &total)) {
      return std::numeric_limits<std::size_t>::max();
    }
  }
  return total / 8;
}

// Each level of a mipmap halves the extents, but not the number of layers.
constexpr std::size_t array_bytes(ArrayShape shape, std::size_t bits, unsigned levels,
                                  bool compressed) noexcept {
  if ((shape.flags & (kArraySparse | kArrayDeferredMapping)) != 0) return 0;
  const bool layers = (shape.flags & (kArrayLayered | kArrayCubemap)) != 0;
  const auto halve = [](std::size_t& n) { n = n > 1 ? n / 2 : n; };
  std::size_t total = 0;
  for (unsigned level = 0; level < levels && level < 64; ++level) {
    if (__builtin_add_overflow(total, level_bytes(shape, bits, compressed), &total)) {
      return std::numeric_limits<std::size_t>::max();
    }
    halve(shape.width);
    halve(shape.height);
    if (!layers) halve(shape.depth);
  }
  return total;
}

// The size of an array by its vendor's description, or of a mipmap with so many levels; 0 without a
// description.
enum class BlockFormats : bool { none, cuda };
template <BlockFormats kFormats, class Descriptor>
constexpr std::size_t described_bytes(const Descriptor* array, unsigned levels) noexcept {
  if (array == nullptr) return 0;
  ArrayShape shape{.width = array->Width, .height = array->Height};
  if constexpr (requires { array->Depth; }) {
    shape.depth = array->Depth;
    shape.flags = array->Flags;
  }
  const auto format = static_cast<unsigned>(array->Format);
  return array_bytes(shape, element_bits(format, array->NumChannels), levels,
                     kFormats == BlockFormats::cuda && is_block_compressed(format));
}

}  // namespace oomrec::shim::gpu
