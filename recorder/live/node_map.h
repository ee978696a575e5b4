// From nodes of the session to the numbers of their holders: an array in pieces, because nodes are
// numbered without gaps. A lookup costs one load beside the last one, and takes no lock.
//
// Most nodes have no holder, and most that have one got it when they were new: so the holders of a
// piece have numbers near each other, and two bytes each suffice.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/memory.h"
#include "recorder/session/index.h"

namespace oomrec::live {

class NodeMap {
 public:
  static constexpr std::uint32_t kElsewhere = ~std::uint32_t{0};

  // Whether nodes of this number are kept here.
  static constexpr bool holds(std::uint32_t node) noexcept { return node / kNodes < kPieces; }

  // The number of the node's holder; 0: it has none; kElsewhere: another index has it.
  std::uint32_t find(std::uint32_t node) const noexcept {
    const Piece& piece = pieces_[node / kNodes];
    const Distance* const distances = piece.distances.load(std::memory_order_acquire);
    if (distances == nullptr) return 0;
    const std::uint32_t distance = distances[node % kNodes].load(std::memory_order_acquire);
    if (distance == 0) return 0;
    return distance == kFar ? kElsewhere : piece.first + (distance - 1);
  }

  // Under the caller's lock, as those below. False: no memory.
  bool prepare(InHook, std::uint32_t node, std::uint32_t number) noexcept {
    Piece& piece = pieces_[node / kNodes];
    if (piece.distances.load(std::memory_order_relaxed) != nullptr) return true;
    Distance* const distances = new_piece();
    if (distances == nullptr) return false;
    piece.first = number;
    piece.distances.store(distances, std::memory_order_release);
    return true;
  }
  // After prepare(). False: it is too far from the others of its piece; insert_elsewhere() then
  // tells find() so, once the other index has it.
  bool insert(std::uint32_t node, std::uint32_t number) noexcept {
    const std::uint32_t distance = number - pieces_[node / kNodes].first;
    if (distance >= kFar - 1) return false;
    set(node, static_cast<std::uint16_t>(distance + 1));
    return true;
  }
  void insert_elsewhere(std::uint32_t node) noexcept { set(node, kFar); }

  // The node has no holder any more. Returns find() of it.
  std::uint32_t erase(std::uint32_t node) noexcept {
    const std::uint32_t found = find(node);
    if (found != 0) set(node, 0);
    return found;
  }

  // Unmaps everything; nobody may be reading.
  void reset(InHook) noexcept {
    for (Piece& piece : pieces_) {
      Distance* const distances = piece.distances.load(std::memory_order_relaxed);
      if (distances == nullptr) continue;
      piece.distances.store(nullptr, std::memory_order_relaxed);
      session::g_index_bytes.fetch_sub(kPieceBytes, std::memory_order_relaxed);
      system::unmap(distances, kPieceBytes);
    }
  }

 private:
  // From the first holder of the piece, plus 1; 0: none.
  using Distance = std::atomic<std::uint16_t>;
  static constexpr std::uint16_t kFar = 0xffff;
  static constexpr std::uint32_t kNodes = 4096;   // of a piece
  static constexpr std::uint32_t kPieces = 4096;  // 2^24 nodes, as many as the trie may have
  static constexpr std::uint64_t kPieceBytes = kNodes * sizeof(Distance);

  struct Piece {
    std::atomic<Distance*> distances;
    std::uint32_t first;  // holder: stored before `distances`
  };

  void set(std::uint32_t node, std::uint16_t distance) noexcept {
    pieces_[node / kNodes].distances.load(std::memory_order_relaxed)[node % kNodes].store(
        distance, std::memory_order_release);
  }

  // In the budget of the indexes (index.h).
  static Distance* new_piece() noexcept {
    const std::uint64_t before =
        session::g_index_bytes.fetch_add(kPieceBytes, std::memory_order_relaxed);
    if (before + kPieceBytes <= session::g_index_budget_bytes.load(std::memory_order_relaxed))
      if (void* const piece = system::map_private(kPieceBytes, system::Pages::populated))
        return static_cast<Distance*>(piece);
    session::g_index_bytes.fetch_sub(kPieceBytes, std::memory_order_relaxed);
    return nullptr;
  }

  Piece pieces_[kPieces] = {};
};

}  // namespace oomrec::live
