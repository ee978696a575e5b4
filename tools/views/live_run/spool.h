// A program's complete output, in an unnamed file, to print at the end.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::tools::views {

class Spool {
 public:
  Spool();  // in the temporary directory, else in memory
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void add(std::string_view bytes);
  void print_to(int descriptor) const;
  std::uint64_t lost_bytes() const { return lost_; }  // did not fit

 private:
  int file_ = -1;
  std::uint64_t lost_ = 0;
};

// Writes all of it. False with errno if a write failed; a part may have been written.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace oomrec::tools::views
