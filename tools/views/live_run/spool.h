// All that a program printed, in a file without a name, to be printed again in full.
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
  std::uint64_t lost_bytes() const { return lost_; }  // that found no room

 private:
  int file_ = -1;
  std::uint64_t lost_ = 0;
};

// All of it, or as much as is taken; false with errno.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace oomrec::tools::views
