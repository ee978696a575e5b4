#include "recorder/session/table.h"

#include <algorithm>
#include <memory>

namespace oomrec::session {

namespace {

constexpr std::uint32_t kStepBytes = 64 * 1024;

// A table that is full asks for room again at one append in so many: each try may be a system call.
constexpr std::uint32_t kRetryAppends = 1024;

}  // namespace

bool TableBase::open(InHook hook, Arena& arena, TableDirectory& directory, const Chunks& shape,
                     std::uint64_t first_committed) noexcept {
  std::construct_at(this);  // an earlier place may have had too little room
  arena_ = &arena;
  directory_ = &directory;
  directory.entry_bytes = shape.entry_bytes();
  if (!reach(hook, shape, 0)) return false;
  commit(static_cast<std::uint32_t>(first_committed));
  return true;
}

bool TableBase::reach(InHook hook, const Chunks& shape, std::uint64_t last) noexcept {
  const Chunks::Place place = shape.locate(last);
  const std::uint32_t end = place.byte + shape.entry_bytes();
  if (place.chunk == chunk_ && end <= touchable_bytes_) return true;
  if (place.chunk >= kMaxChunks || last > ~std::uint32_t{0} - 1) return false;
  if (!asked_again_ && arena_->has_given_back()) {
    asked_again_ = true;
    refused_ = 0;
  }
  if (refused_ != 0 && ++refused_ % kRetryAppends != 0) return false;

  if (chunks_[place.chunk] == nullptr) {
    const std::uint64_t offset = arena_->take(hook, chunk_bytes(place.chunk));
    if (offset == 0) {
      refused_ = std::max(refused_, 1u);
      return false;
    }
    chunks_[place.chunk] = arena_->at(offset);
    directory_->chunk_offsets[place.chunk].store(offset, std::memory_order_relaxed);
    chunk_offset_ = offset;
    chunk_ = place.chunk;
    touchable_bytes_ = 0;
  }
  while (touchable_bytes_ < end) {
    const std::uint32_t left = static_cast<std::uint32_t>(chunk_bytes(chunk_)) - touchable_bytes_;
    const std::uint32_t step = std::min(kStepBytes, left);
    if (!arena_->populate(hook, chunk_offset_ + touchable_bytes_, step)) {
      refused_ = std::max(refused_, 1u);
      return false;
    }
    touchable_bytes_ += step;
  }
  refused_ = 0;
  return true;
}

}  // namespace oomrec::session
