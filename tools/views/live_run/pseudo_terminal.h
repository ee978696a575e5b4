// A terminal of its own for a program, with us at its other end.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

class PseudoTerminal {
 public:
  // With the settings of our own terminal (stdin). Throws Error where none is to be had.
  explicit PseudoTerminal(Size size);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // In the child, before exec: it leads a session whose terminal this is, and has it in place of
  // those of stdin, stdout and stderr that were a terminal. False with errno.
  bool attach() const;

  int descriptor() const { return ours_; }
  void resize(Size size) const;
  void type(std::string_view bytes) const;  // as if at its keyboard; what it does not take is lost

 private:
  int ours_ = -1;
  std::string name_;
};

}  // namespace oomrec::tools::views
