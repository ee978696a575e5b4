// From nodes of the session to the numbers of their entries: an array in pieces, because nodes are
// numbered without gaps. A lookup costs one load beside the last one, and takes no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/memory.h"
#include "recorder/live/index.h"

namespace oomrec::live {

class NodeMap {
 public:
  // Whether nodes of this number are kept here.
  static constexpr bool holds(std::uint32_t node) noexcept { return node / kNodes < kPieces; }

  // The number of the node's entry; 0: it has none.
  std::uint32_t find(std::uint32_t node) const noexcept {
    const Number* const piece = pieces_[node / kNodes].load(std::memory_order_acquire);
    return piece == nullptr ? 0 : piece[node % kNodes].load(std::memory_order_acquire);
  }

  // Under the caller's lock. False: no memory.
  bool insert(InHook, std::uint32_t node, std::uint32_t number) noexcept {
    std::atomic<Number*>& slot = pieces_[node / kNodes];
    Number* piece = slot.load(std::memory_order_relaxed);
    if (piece == nullptr) {
      piece = new_piece();
      if (piece == nullptr) return false;
      slot.store(piece, std::memory_order_release);
    }
    piece[node % kNodes].store(number, std::memory_order_release);
    return true;
  }

  // Unmaps everything; nobody may be reading.
  void reset(InHook) noexcept {
    for (std::atomic<Number*>& slot : pieces_) {
      Number* const piece = slot.load(std::memory_order_relaxed);
      if (piece == nullptr) continue;
      slot.store(nullptr, std::memory_order_relaxed);
      g_index_bytes.fetch_sub(kPieceBytes, std::memory_order_relaxed);
      system::unmap(piece, kPieceBytes);
    }
  }

 private:
  using Number = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kNodes = 4096;   // of a piece
  static constexpr std::uint32_t kPieces = 4096;  // 2^24 nodes, as many as the trie may have
  static constexpr std::uint64_t kPieceBytes = kNodes * sizeof(Number);

  // In the budget of the indexes (index.h).
  static Number* new_piece() noexcept {
    const std::uint64_t before = g_index_bytes.fetch_add(kPieceBytes, std::memory_order_relaxed);
    if (before + kPieceBytes <= g_index_budget_bytes.load(std::memory_order_relaxed))
      if (void* const piece = system::map_private(kPieceBytes)) return static_cast<Number*>(piece);
    g_index_bytes.fetch_sub(kPieceBytes, std::memory_order_relaxed);
    return nullptr;
  }

  std::atomic<Number*> pieces_[kPieces] = {};
};

}  // namespace oomrec::live
