// The program's private anonymous mappings from before `oomrec attach`, from /proc/self/maps.
//
// The kernel does not record who made a mapping. This leaves out thread stacks (behind a guard
// page, or a guard region), variables of modules, small mappings, which the loader makes, and
// memory of glibc's malloc: its arenas, and its blocks with mappings of their own. It looks for the
// headers of these blocks, within bounds, because the kernel merges adjoining mappings; if it does
// not find all of them, it takes the remaining bytes off the largest mappings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/machine/page.h"

namespace oomrec::shim {

class MappingsBefore {
 public:
  // `block_bytes`: of malloc's blocks with mappings of their own. Only for a program whose malloc
  // is glibc's.
  explicit MappingsBefore(std::uint64_t block_bytes) noexcept;
  ~MappingsBefore();
  MappingsBefore(const MappingsBefore&) = delete;
  MappingsBefore& operator=(const MappingsBefore&) = delete;

  struct Piece {
    std::uint64_t start, end;
    std::uint64_t bytes() const noexcept { return end - start; }
  };
  // In order of their addresses.
  const Piece* begin() const noexcept { return pieces_; }
  const Piece* end() const noexcept { return pieces_ + count_; }

 private:
  void add(const Piece&) noexcept;
  void add_without_stacks(const Piece&) noexcept;
  void add_without_blocks(const Piece&) noexcept;
  std::uint64_t block_at(std::uint64_t address, std::uint64_t most) const noexcept;
  bool is_resident(std::uint64_t page, std::uint64_t end) noexcept;
  void take_off_blocks_not_found() noexcept;

  static constexpr std::size_t kMost = 64 * 1024;  // as many as the kernel allows by default
  Piece* const pieces_;
  std::size_t count_ = 0;
  std::uint64_t block_bytes_;  // not found yet
  const std::uint64_t page_bytes_ = machine::page_bytes();
  const std::uint64_t stack_bytes_;
  std::uint64_t scan_left_ = std::uint64_t{32} << 30;  // bytes; about 1 ms for a GiB in memory

  static constexpr std::size_t kWindowPages = 512;
  bool resident_[kWindowPages];  // from `window_` on
  std::uint64_t window_ = 0, window_end_ = 0;
  unsigned windows_left_ = 512, looks_left_ = 8192;
};

}  // namespace oomrec::shim
