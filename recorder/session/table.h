// An append-only table in the arena.
//
// Promise: entries never move; an entry is complete before the commit index in the file includes
// it, so a writer killed inside append() loses that one entry. (Those of reserve() are zero until
// they are complete.) append() to a table that cannot grow
// fails, and retries only now and then. Prohibition: entries are never removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "common/session/chunks.h"
#include "common/system/hook_scope.h"
#include "recorder/session/arena.h"

namespace oomrec::session {

// The part common to all entry types.
class TableBase {
 public:
  std::uint32_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }  // entry 0 included

 protected:
  friend class Session;

  // Adds the table to the file's directory, with its first chunk and its entry 0.
  bool open(InHook, Arena& arena, TableDirectory& directory, const Chunks& shape,
            std::uint64_t first_committed) noexcept;

  // Makes entries up to `last` accessible: reserves chunks and populates them step by step. Under
  // lock_.
  bool reach(InHook, const Chunks& shape, std::uint64_t last) noexcept;

  std::uint32_t reserve(InHook hook, const Chunks& shape, std::uint32_t count) noexcept;

  // Publishes entries [0, size) to readers. Under lock_.
  void commit(std::uint32_t size) noexcept {
    size_.store(size, std::memory_order_release);
    directory_->committed.store(size, std::memory_order_release);
  }

  std::byte* chunks_[kMaxChunks] = {};
  Arena* arena_ = nullptr;
  TableDirectory* directory_ = nullptr;
  std::atomic<std::uint32_t> size_{0};
  system::Mutex lock_;

 private:
  // False: not now, because the table could not grow before.
  bool may_grow() noexcept;
  bool fail() noexcept;  // it could not grow: returns false
  bool has_chunk(InHook hook,
                 std::uint32_t chunk) noexcept;  // takes it from the arena. Under lock_
  bool populate(InHook hook, std::uint32_t chunk, std::uint32_t from, std::uint32_t to) noexcept;
  // Prepares more entries than `prepared`, unless another thread has. Without the lock: others need
  // not wait for one that is preempted here, they do it themselves.
  bool prepare(InHook hook, const Chunks& shape, std::uint32_t prepared) noexcept;

  // For append(): the chunk that grows, and how much of it is populated.
  std::uint32_t chunk_ = 0;
  std::uint32_t touchable_bytes_ = 0;
  std::atomic<std::uint32_t> prepared_{0};  // for reserve(): entries [0, prepared_) are populated
  std::atomic<std::uint32_t> failures_{0};  // appends since the table could not grow
  std::atomic<bool> retried_{false};        // since the arena released its reserve
};

template <class T>
class Table : public TableBase {
  static_assert(std::is_standard_layout_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= kMaxEntryBytes);

 public:
  static constexpr Chunks kShape{sizeof(T)};

  // Adds an entry: `fill(T&)` completes it (initially zeroed) before readers can see it; its number
  // goes to `index`. False: the table is full or there is no memory; the caller counts the drop. A
  // lock of the table serializes appends; `fill` must be short.
  template <class Fill>
  bool append(InHook hook, std::uint32_t& index, Fill&& fill) noexcept {
    const system::MutexGuard guard{lock_};
    const std::uint32_t next = size_.load(std::memory_order_relaxed);
    if (!guard || next == 0 || !reach(hook, kShape, next)) return false;
    fill(at(next));
    index = next;
    commit(next + 1);
    return true;
  }

  // Adds `count` adjacent entries, which readers see at once, zeroed until the caller has filled
  // them in. Takes no lock while the table need not grow: of a thousand threads that start at once,
  // one that is preempted here delays none. Returns the first; 0 as append() returns false. Not
  // together with append() on one table.
  std::uint32_t reserve(InHook hook, std::uint32_t count) noexcept {
    return TableBase::reserve(hook, kShape, count);
  }

  // `index` is below size(), or of an append() in progress.
  T& at(std::uint32_t index) noexcept {
    const Chunks::Slot slot = kShape.locate(index);
    return *reinterpret_cast<T*>(chunks_[slot.chunk] + slot.byte);
  }
};

}  // namespace oomrec::session
