// The terminal of a program, whose other end we have, and its complete output, to print at the
// end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/base/descriptor.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class PseudoTerminal {
 public:
  // Takes over the settings of our terminal (stdin). Throws Error if it cannot be created.
  explicit PseudoTerminal(Size size);

  // In the child, before exec: starts a session with this controlling terminal, and replaces those
  // of stdin, stdout and stderr that are a terminal. False with errno.
  bool attach() const;

  int descriptor() const { return descriptor_; }
  void resize(Size size) const;
  // Input as if typed. Bytes that the program does not read in time are lost.
  void type(std::string_view bytes) const;

 private:
  Descriptor descriptor_;
  std::string name_;
};

// A program's complete output, in an unnamed file, to print at the end.
class Spool {
 public:
  Spool();  // in the temporary directory, else in memory

  void add(std::string_view bytes);
  void print_to(int descriptor) const;
  std::uint64_t lost_bytes() const { return lost_; }  // did not fit

 private:
  Descriptor file_;
  std::uint64_t lost_ = 0;
};

}  // namespace oomrec::tools::views
