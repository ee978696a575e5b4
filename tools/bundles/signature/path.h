// The frames of a row, and the path by which a signature knows a stack: its program's own innermost
// functions by names that stay the same over shifted lines, checkouts, compilers and versions of
// Python.
//
// Works on what a row has and on nothing else, so that old rows can be given new signatures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools::bundles {

struct Frame {
  bool python = false;
  bool own = false;     // of the program, not of a library
  bool script = false;  // known by its file: of Python, or of another language with files
  std::uint32_t line = 0;
  std::uint64_t offset = 0;  // in the module; native frames only
  std::string function;      // of native code: recording::plain_name()
  std::string file, module;  // the file's last two components, the module's name
  std::string build_id;
  std::string key;  // frame_key() of the others
};

inline constexpr std::size_t kPathFrames = 2;  // a third one is often the program's start
inline constexpr std::string_view kPathSeparator = " <- ";

// "cache.py:remember", "push" of train::Rows::push, "prog:main"; without a name
// "prog@1f2e3d4c5b6a+0x1234". Empty for a frame that says nothing: a comprehension, or an unknown
// address.
std::string frame_key(const Frame& frame);

// A stack, innermost first. Stacks have most frames in common.
using Frames = std::vector<std::shared_ptr<const Frame>>;
std::shared_ptr<const Frame> with_key(Frame frame);

// The frames of a stack's path, innermost first, as indices: at most kPathFrames of the program's
// own, each function once, without lambdas if there is anything else. Without own frames, those of
// libraries: lines of Python, else native functions. Empty if the stack has neither.
std::vector<std::size_t> path_of(const Frames& frames);

// "cache.py:remember <- api.py:handle": the first `most` frames of a path. Empty: no path.
std::string path_key(const Frames& frames, std::size_t most = kPathFrames);

// The same for people: "cache.cpp:remember ← api.cpp:handle", with the files of native functions.
std::string path_title(const Frames& frames);

}  // namespace oomrec::tools::bundles
