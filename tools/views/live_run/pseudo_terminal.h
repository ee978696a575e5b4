// A pseudo-terminal for a program. This process has its other end.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class PseudoTerminal {
 public:
  // Takes over the settings of our terminal (stdin). Throws Error if it cannot be created.
  explicit PseudoTerminal(Size size);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // In the child, before exec: starts a session with this controlling terminal, and replaces those
  // of stdin, stdout and stderr that are a terminal. False with errno.
  bool attach() const;

  int descriptor() const { return descriptor_; }
  void resize(Size size) const;
  // Input as if typed. Bytes that the program does not read in time are lost.
  void type(std::string_view bytes) const;

 private:
  int descriptor_ = -1;
  std::string name_;
};

}  // namespace oomrec::tools::views
