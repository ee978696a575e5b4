#include "recorder/session/table.h"

#include <algorithm>
#include <memory>

namespace oomrec::session {

namespace {

// A table's memory is populated in such steps: small ones in a small recording, so that one table
// does not take what another one needs.
std::uint32_t step_bytes(const Arena& arena) noexcept {
  constexpr std::uint64_t kLargest = 64 * 1024;
  const std::uint64_t share = arena.budget_bytes() / 128;
  return static_cast<std::uint32_t>(std::clamp(share - share % kUnitBytes, kUnitBytes, kLargest));
}

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
  prepared_ = std::min(touchable_bytes_ / shape.entry_bytes(), shape.capacity(0));
  commit(static_cast<std::uint32_t>(first_committed));
  return true;
}

bool TableBase::may_grow() noexcept {
  if (!retried_ && arena_->has_released_reserve()) {
    retried_ = true;
    failures_ = 0;
  }
  return failures_ == 0 || ++failures_ % kRetryAppends == 0;
}

bool TableBase::fail() noexcept {
  failures_ = std::max(failures_.load(), 1u);
  return false;
}

bool TableBase::has_chunk(InHook hook, std::uint32_t chunk) noexcept {
  if (chunks_[chunk] != nullptr) return true;
  const std::uint64_t offset = arena_->take(hook, chunk_bytes(chunk));
  if (offset == 0) return false;
  directory_->chunk_offsets[chunk].store(offset, std::memory_order_relaxed);
  chunks_[chunk] = arena_->at(offset);
  return true;
}

bool TableBase::populate(InHook hook, std::uint32_t chunk, std::uint32_t from,
                         std::uint32_t to) noexcept {
  const std::uint64_t offset = directory_->chunk_offsets[chunk].load(std::memory_order_relaxed);
  if (!arena_->populate(hook, offset + from, to - from)) return fail();
  failures_ = 0;
  return true;
}

bool TableBase::reach(InHook hook, const Chunks& shape, std::uint64_t last) noexcept {
  const Chunks::Slot slot = shape.locate(last);
  const std::uint32_t end = slot.byte + shape.entry_bytes();
  if (slot.chunk == chunk_ && end <= touchable_bytes_) return true;
  if (slot.chunk >= kMaxChunks || last > ~std::uint32_t{0} - 1 || !may_grow()) return false;
  if (!has_chunk(hook, slot.chunk)) return fail();
  if (slot.chunk != chunk_) touchable_bytes_ = 0;
  chunk_ = slot.chunk;
  while (touchable_bytes_ < end) {
    const std::uint32_t left = static_cast<std::uint32_t>(chunk_bytes(chunk_)) - touchable_bytes_;
    const std::uint32_t step = std::min(step_bytes(*arena_), left);
    if (!populate(hook, chunk_, touchable_bytes_, touchable_bytes_ + step)) return false;
    touchable_bytes_ += step;
  }
  return true;
}

bool TableBase::prepare(InHook hook, const Chunks& shape, std::uint32_t prepared) noexcept {
  const Chunks::Slot slot = shape.locate(prepared);
  if (slot.chunk >= kMaxChunks || !may_grow()) return false;
  if (slot.byte == 0) {  // the first entry of a chunk
    const system::MutexGuard guard{lock_};
    if (!guard || !has_chunk(hook, slot.chunk)) return fail();
  }
  const std::uint32_t number = slot.byte / shape.entry_bytes();  // in the chunk
  const std::uint32_t entries = std::clamp(step_bytes(*arena_) / shape.entry_bytes(),
                                           std::uint32_t{1}, shape.capacity(slot.chunk) - number);
  const auto from = static_cast<std::uint32_t>(slot.byte - slot.byte % kUnitBytes);
  const std::uint32_t bytes = slot.byte + entries * shape.entry_bytes() - from;
  const std::uint64_t offset = directory_->chunk_offsets[slot.chunk].load();
  if (!arena_->populate_uncounted(hook, offset + from, bytes))
    return prepared_.load(std::memory_order_relaxed) != prepared || fail();
  failures_ = 0;
  if (prepared_.compare_exchange_strong(prepared, prepared + entries)) arena_->count(bytes);
  return true;
}

std::uint32_t TableBase::reserve(InHook hook, const Chunks& shape, std::uint32_t count) noexcept {
  std::uint32_t first = size_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t prepared = prepared_.load(std::memory_order_acquire);
    if (first == 0) return 0;
    if (first + count <= prepared) {
      if (size_.compare_exchange_weak(first, first + count)) break;
    } else {
      if (!prepare(hook, shape, prepared)) return 0;
      first = size_.load(std::memory_order_relaxed);
    }
  }
  const std::uint32_t size = first + count;
  u64 committed = directory_->committed.load();
  while (committed < size && !directory_->committed.compare_exchange_weak(committed, size))
    continue;
  return first;
}

}  // namespace oomrec::session
