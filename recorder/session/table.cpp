#include "recorder/session/table.h"

#include <algorithm>
#include <memory>

namespace oomrec::session {

namespace {

constexpr std::uint32_t kStepBytes = 64 * 1024;

// A full table tries to grow at one append in so many: each try may be a system call.
constexpr std::uint32_t kRetryAppends = 1024;

}  // namespace

bool TableBase::open(InHook hook, Arena& arena, TableDirectory& directory, const Chunks& shape,
                     std::uint64_t first_committed) noexcept {
  std::construct_at(this);  // an earlier attempt, in another directory, may have failed
  arena_ = &arena;
  directory_ = &directory;
  directory.entry_bytes = shape.entry_bytes();
  if (!reach(hook, shape, 0)) return false;
  commit(static_cast<std::uint32_t>(first_committed));
  return true;
}

bool TableBase::reach(InHook hook, const Chunks& shape, std::uint64_t last) noexcept {
  const Chunks::Slot slot = shape.locate(last);
  const std::uint32_t end = slot.byte + shape.entry_bytes();
  if (slot.chunk == chunk_ && end <= touchable_bytes_) return true;
  if (slot.chunk >= kMaxChunks || last > ~std::uint32_t{0} - 1) return false;
  if (!retried_ && arena_->has_released_reserve()) {
    retried_ = true;
    failed_ = 0;
  }
  if (failed_ != 0 && ++failed_ % kRetryAppends != 0) return false;

  if (chunks_[slot.chunk] == nullptr) {
    const std::uint64_t offset = arena_->take(hook, chunk_bytes(slot.chunk));
    if (offset == 0) {
      failed_ = std::max(failed_, 1u);
      return false;
    }
    chunks_[slot.chunk] = arena_->at(offset);
    directory_->chunk_offsets[slot.chunk].store(offset, std::memory_order_relaxed);
    chunk_offset_ = offset;
    chunk_ = slot.chunk;
    touchable_bytes_ = 0;
  }
  while (touchable_bytes_ < end) {
    const std::uint32_t left = static_cast<std::uint32_t>(chunk_bytes(chunk_)) - touchable_bytes_;
    const std::uint32_t step = std::min(kStepBytes, left);
    if (!arena_->populate(hook, chunk_offset_ + touchable_bytes_, step)) {
      failed_ = std::max(failed_, 1u);
      return false;
    }
    touchable_bytes_ += step;
  }
  failed_ = 0;
  return true;
}

}  // namespace oomrec::session
