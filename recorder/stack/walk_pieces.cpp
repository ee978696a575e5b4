#include "recorder/stack/walk_pieces.h"

#include <algorithm>

namespace oomrec::stack {

void WalkPieces::drop_oldest() noexcept {
  pieces_[oldest_].number = 0;
  oldest_ = (oldest_ + 1) % most_pieces_;
  --count_;
}

std::uint32_t WalkPieces::take(std::uint32_t cells) noexcept {
  if (next_cell_ + cells > most_cells_) {
    while (count_ != 0 && extents_[oldest_].begin >= next_cell_) drop_oldest();
    next_cell_ = 0;
  }
  const std::uint32_t begin = next_cell_;
  next_cell_ += cells;
  while (count_ != 0 && extents_[oldest_].begin < next_cell_ && extents_[oldest_].end > begin)
    drop_oldest();
  if (count_ == most_pieces_) drop_oldest();
  return begin;
}

PieceCell WalkPieces::add(const Cell* cells, std::uint32_t count, const PieceCell& outer) noexcept {
  const std::uint32_t begin = take(count + 1);
  std::copy_n(cells, count, cells_ + begin);
  make_sentinel(cells_[begin + count]);
  const std::uint32_t at = (oldest_ + count_++) % most_pieces_;
  extents_[at] = {begin, begin + count + 1};
  WalkPiece& piece = pieces_[at];
  if (++last_number_ == 0) ++last_number_;
  piece = {cells_ + begin + count, {}, last_number_, 1};
  // If `outer` was dropped for this one, its number tells.
  if (outer.piece != nullptr) {
    piece.outer = outer;
    piece.length = outer.piece->length + 1;
  }
  return {&piece, cells_ + begin, piece.number};
}

void WalkPieces::clear() noexcept {
  while (count_ != 0) drop_oldest();
}

}  // namespace oomrec::stack
