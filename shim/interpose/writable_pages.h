// Which memory of this process is writable now, from one reading of /proc/self/maps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oomrec::shim {

class WritablePages {
 public:
  WritablePages() noexcept;
  ~WritablePages();
  WritablePages(const WritablePages&) = delete;
  WritablePages& operator=(const WritablePages&) = delete;

  // False if it is not writable, or not known: /proc cannot be read.
  bool contain(std::uint64_t address) const noexcept;

 private:
  struct Range {
    std::uint64_t start, end;
  };
  static constexpr std::size_t kMost = 64 * 1024;  // as many as the kernel allows by default

  Range* const ranges_;
  std::size_t count_ = 0;
};

}  // namespace oomrec::shim
