// What a thread's last walk over its Python frames found, so that the next one need not look up
// again what still stands there (python.cpp).
#pragma once

#include <cstdint>

#include "recorder/session/layout.h"

namespace oomrec::stack {

// What distinguishes a code object from another one that had its address before (python_code.h).
struct CodePrint {
  std::uint64_t file;
  std::uint64_t name;
  std::uint64_t line_table;
  std::uint64_t version;  // co_version, or bytes of the line table where there is none
  std::uint64_t first_line;

  bool operator==(const CodePrint&) const = default;
};

// The part of an interpreter's frame that is read, as it stands there.
struct FrameCells {
  std::uint64_t previous;     // address of the next frame outwards; 0: this is the outermost
  std::uint64_t code;         // its code object's address, in some versions with tag bits
  std::uint64_t instruction;  // index or address
  std::uint64_t role;         // owner or entry flag, where the version has them

  bool operator==(const FrameCells&) const = default;
};

// One link of the interpreter's chain: a frame to be shown, or one of its own helpers.
struct PythonLink {
  std::uint64_t address;
  FrameCells cells;
  CodePrint print;       // with has_code
  std::uint64_t marker;  // an address in the C frame of the eval loop that runs it; 0: unknown
  std::uint64_t word;    // frame word of the session; 0: not shown
  std::uint32_t shown;   // how many are shown from the outermost link to this one
  bool has_code;         // cells.code is a code object that must still be what it was
};

inline constexpr std::uint32_t kPythonLinks = 2 * session::kMaxFrames;  // each may have a helper

struct PythonMemo {
  static constexpr std::uint32_t kPlaces = 64;

  std::uint32_t count;             // of links that the next walk may meet; 0: none remembered
  std::uint16_t places[kPlaces];   // where a frame's address may be in `links`: a hint
  PythonLink links[kPythonLinks];  // the outermost first: what is kept stays where it is
  PythonLink fresh[kPythonLinks];  // the walk under way, innermost first
};

struct PythonStack {
  const PythonLink* links;  // the outermost first; stand until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // so many of them, the outermost, are those of the last walk
  bool truncated;
};

}  // namespace oomrec::stack
