// What a thread's last walk over its Python frames found, so that the next one need not look up
// again what still stands there (python.cpp).
#pragma once

#include <cstdint>

#include "common/session/layout.h"

namespace oomrec::stack {

// What distinguishes a code object from another one that had its address before (python_code.h).
struct CodeFingerprint {
  std::uint64_t file;
  std::uint64_t name;
  std::uint64_t line_table;
  std::uint64_t version;  // co_version; where there is none, made of the first line and the table

  // Without a branch for each.
  bool operator==(const CodeFingerprint& other) const noexcept {
    return ((file ^ other.file) | (name ^ other.name) | (line_table ^ other.line_table) |
            (version ^ other.version)) == 0;
  }
};

// One link of the interpreter's chain, a frame to be shown or one of its own helpers, as it was
// read. What it leads to is the address of the next link outwards. One cache line.
struct alignas(64) PythonLink {
  std::uint64_t address;
  std::uint64_t code;         // as the frame has it: in some versions with tag bits
  std::uint64_t instruction;  // index or address
  CodeFingerprint fingerprint;
  std::uint32_t role;  // owner or entry flag, where the version has them
  bool has_code;       // `code` is a code object, whose fingerprint must still be `fingerprint`
};
static_assert(sizeof(PythonLink) == 64);

// What was made of a link and of those further out.
struct PythonFrame {
  std::uint64_t word;    // frame word of the session; 0: not shown
  std::uint64_t marker;  // an address in the C frame of the eval loop that runs it; 0: unknown
  std::uint64_t chain;   // of this link and all further out: chain.h
  std::uint32_t shown;   // how many are shown from the outermost link to this one
};

inline constexpr std::uint32_t kPythonLinks = 2 * session::kMaxFrames;  // each may have a helper

// The outermost is the first: what is kept stays where it is.
struct PythonMemo {
  static constexpr std::uint32_t kPlaces = 64;

  std::uint32_t count;                 // of links that the next walk may meet; 0: none remembered
  std::uint16_t places[kPlaces];       // where a frame's address may be among the links: a hint
  PythonLink chain[1 + kPythonLinks];  // the first is what the outermost link leads to: nothing
  PythonFrame frames[kPythonLinks];
  PythonLink fresh_links[kPythonLinks];  // of the walk under way, innermost first
  PythonFrame fresh_frames[kPythonLinks];

  PythonLink& link(std::uint32_t index) noexcept { return chain[1 + index]; }
  const PythonLink& link(std::uint32_t index) const noexcept { return chain[1 + index]; }
};

struct PythonStack {
  const PythonFrame* frames;  // the outermost first; stand until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // so many of them, the outermost, are those of the last walk
  bool truncated;
};

}  // namespace oomrec::stack
