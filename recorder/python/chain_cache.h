// The thread's last walk over its Python frames, whose unchanged part the next one reuses (walk.h),
// and the hash of a chain of frames.
#pragma once

#include <bit>
#include <cstdint>

#include "common/session/layout.h"

namespace oomrec::stack {

// Distinguishes a code object from an earlier one at the same address (code_fingerprint.h).
struct CodeFingerprint {
  std::uint64_t file;
  std::uint64_t name;
  std::uint64_t line_table;
  std::uint64_t version;  // co_version; without one, a hash of the first line and the table

  // Without a branch for each.
  bool operator==(const CodeFingerprint& other) const noexcept {
    return ((file ^ other.file) | (name ^ other.name) | (line_table ^ other.line_table) |
            (version ^ other.version)) == 0;
  }
};

// One link of the interpreter's chain as read: a frame to be shown, or a helper frame of the
// interpreter. It leads to the address of the next link outwards. One cache line.
struct alignas(64) PythonLink {
  std::uint64_t address;
  std::uint64_t code;         // as in the frame: in some versions with tag bits
  std::uint64_t instruction;  // index or address
  CodeFingerprint fingerprint;
  std::uint32_t role;  // owner or entry flag, where the version has them
  bool has_code;       // `code` is a code object, whose fingerprint must still match
};
static_assert(sizeof(PythonLink) == 64);

// What the walk derived from a link and those further out.
struct PythonFrame {
  std::uint64_t word;    // frame word of the session; 0: not shown
  std::uint64_t marker;  // an address in the C frame of the eval loop that runs it; 0: unknown
  std::uint64_t chain;   // of this link and all further out: chain_of()
  std::uint32_t shown;   // how many are shown from the outermost link to this one
};

inline constexpr std::uint32_t kPythonLinks = 2 * session::kMaxFrames;  // each may have a helper

// The outermost link is the first, so that reused links need not move.
struct PythonCache {
  static constexpr std::uint32_t kHints = 64;

  std::uint32_t era;                   // g_code_era, of the words
  std::uint32_t count;                 // of links that the next walk may reuse; 0: none
  std::uint16_t hints[kHints];         // the link that may have a frame's address
  PythonLink chain[1 + kPythonLinks];  // the first is what the outermost link leads to: nothing
  PythonFrame frames[kPythonLinks];
  PythonLink fresh_links[kPythonLinks];  // of the current walk, innermost first
  PythonFrame fresh_frames[kPythonLinks];

  PythonLink& link(std::uint32_t index) noexcept { return chain[1 + index]; }
  const PythonLink& link(std::uint32_t index) const noexcept { return chain[1 + index]; }
};

struct PythonStack {
  const PythonFrame* frames;  // the outermost first; valid until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // how many, the outermost, come from the last walk
  bool truncated;
};

// A 64-bit hash of a chain of frames.
//
// Computed from the outermost frame inwards, so that each frame has the hash of the chain that ends
// in it. Each step is a bijection of the outer hash, and of the new frame: chains that differ in
// one frame always have different hashes; other pairs collide with a chance of 1 in 2^64.
inline std::uint64_t chain_of(std::uint64_t outside, std::uint64_t a, std::uint64_t b) noexcept {
  return (std::rotl(outside, 29) ^ (a * 0x9e3779b97f4a7c15u + b)) * 0xd6e8feb86659fd93u;
}

}  // namespace oomrec::stack
