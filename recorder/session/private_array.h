// An array in private memory that grows in pieces: what the recorder keeps for itself about each
// entry of a table. Elements never move, so they are read without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/memory.h"

namespace oomrec::session {

// At most kMost elements of T, zero at first.
template <class T, std::uint32_t kMost>
class PrivateArray {
 public:
  static constexpr std::uint32_t kPiece = 4096;  // elements

  // The element; nullptr: prepare() has not been called for it.
  T* find(std::uint32_t index) const noexcept {
    if (index >= kMost) return nullptr;
    T* const piece = pieces_[index / kPiece].load(std::memory_order_acquire);
    return piece == nullptr ? nullptr : piece + index % kPiece;
  }

  // Under the caller's lock. False: no memory.
  bool prepare(InHook, std::uint32_t index) noexcept {
    if (index >= kMost) return false;
    std::atomic<T*>& piece = pieces_[index / kPiece];
    if (piece.load(std::memory_order_relaxed) != nullptr) return true;
    void* const memory = system::map_private(kPiece * sizeof(T));
    if (memory != nullptr) piece.store(static_cast<T*>(memory), std::memory_order_release);
    return memory != nullptr;
  }

  // Unmaps everything; nobody may be reading.
  void reset(InHook) noexcept {
    for (std::atomic<T*>& piece : pieces_)
      if (T* const memory = piece.exchange(nullptr, std::memory_order_relaxed))
        system::unmap(memory, kPiece * sizeof(T));
  }

 private:
  std::atomic<T*> pieces_[kMost / kPiece] = {};
};

}  // namespace oomrec::session
