// What a thread's recent walks read, in pieces that walks share: most stacks of a thread have their
// outer part in common.
//
// A piece is the cells that a walk read from one frame on, in the order of reading, until it met a
// frame of an older piece; there it goes on. Pieces do not change. They are overwritten in the
// order in which they were made, and then have another number than those who point to them expect.
#pragma once

#include <cstdint>

#include "common/machine/instructions.h"

namespace oomrec::stack {

// A word that a step read off the stack.
struct Cell {
  std::uint64_t address, value;
};

// A cell that contains its own address, but is cached as 0: it always counts as changed.
inline void make_sentinel(Cell& cell) noexcept {
  cell.address = reinterpret_cast<std::uint64_t>(&cell.address);
  cell.value = 0;
}

// The first changed cell from `cell` on, up to a sentinel.
[[gnu::always_inline]] inline const Cell* first_changed(const Cell* cell) noexcept {
  for (;; cell += 4) {
    if (machine::load_word(cell[0].address) != cell[0].value) return cell;
    if (machine::load_word(cell[1].address) != cell[1].value) return cell + 1;
    if (machine::load_word(cell[2].address) != cell[2].value) return cell + 2;
    if (machine::load_word(cell[3].address) != cell[3].value) return cell + 3;
  }
}

struct WalkPiece;

// A cell of a piece, where a walk or another piece goes on.
struct PieceCell {
  const WalkPiece* piece;  // nullptr: none
  const Cell* cell;
  std::uint32_t number;  // the piece's

  bool valid() const noexcept;
};

struct WalkPiece {
  const Cell* end;  // of its cells: the sentinel behind them
  PieceCell outer;  // piece nullptr: the stack ends here
  std::uint32_t number;
  std::uint32_t length;  // pieces from here to the end of the stack
};

inline bool PieceCell::valid() const noexcept {
  return piece != nullptr && piece->number == number;
}

// What has changed among the cells from `at` to the end of the stack: the innermost changed one and
// its present word, hashed.
inline constexpr std::uint64_t kNothing = 0, kOverwritten = 1;
[[gnu::always_inline]] inline std::uint64_t change_of(PieceCell at) noexcept {
  for (;;) {
    if (at.piece->number != at.number) [[unlikely]]
      return kOverwritten;
    const Cell* const cell = first_changed(at.cell);
    if (cell != at.piece->end) [[unlikely]]
      return (cell->address * 3 + machine::load_word(cell->address)) * 0x9e3779b97f4a7c15u |
             kOverwritten;
    if (at.piece->outer.piece == nullptr) return kNothing;
    at = at.piece->outer;
  }
}

// Memory for so many pieces and cells.
struct PieceExtent {  // of a piece's cells
  std::uint32_t begin, end;
};
template <std::uint32_t kPieces, std::uint32_t kCells>
struct PieceMemory {
  PieceExtent extents[kPieces];
  WalkPiece pieces[kPieces];
  Cell cells[kCells];
};

class WalkPieces {
 public:
  static constexpr std::uint32_t kMostCells = 1000;  // of a piece
  static constexpr std::uint32_t kMostLength = 3;    // a walk visits so many pieces

  // From now on uses this memory, zeroed or used before. No earlier piece is valid any more.
  template <std::uint32_t kPieces, std::uint32_t kCells>
  void use(PieceMemory<kPieces, kCells>& memory) noexcept {
    static_assert(kCells > kMostCells);
    clear();
    extents_ = memory.extents;
    pieces_ = memory.pieces;
    cells_ = memory.cells;
    most_pieces_ = kPieces;
    most_cells_ = kCells;
    next_cell_ = oldest_ = 0;
  }

  // A new piece of `count` cells, at most kMostCells. `outer` is valid, or has no piece.
  PieceCell add(const Cell* cells, std::uint32_t count, const PieceCell& outer) noexcept;

  void clear() noexcept;

 private:
  void drop_oldest() noexcept;
  std::uint32_t take(std::uint32_t cells) noexcept;  // where so many fit

  PieceExtent* extents_;
  WalkPiece* pieces_;
  Cell* cells_;
  std::uint32_t most_pieces_, most_cells_;
  std::uint32_t next_cell_, oldest_, count_, last_number_;
};

}  // namespace oomrec::stack
