// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <string_view>
#include <utility>

namespace oomrec::tools {

class Descriptor {
 public:
  Descriptor(int opened = -1) noexcept : number_(opened) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  operator int() const noexcept { return number_; }  // −1: none

 private:
  int number_;
};

// Writes all of it. False with errno if a write failed; a part may have been written.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace oomrec::tools
