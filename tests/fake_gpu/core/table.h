// A fixed table of objects; nothing is allocated. Where a handle of the front end is the address of
// a slot, slots are reused as late as possible, so that stale handles are
// recognized.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_gpu {

enum class Reuse { late, soon };

template <class T, std::size_t kSlots, Reuse kReuse = Reuse::late>
class Table {
 public:
  // A new object, or null when the table is full.
  T* take() {
    Slot* const slot = kReuse == Reuse::soon ? freed_or_first() : next_unused();
    if (slot == nullptr) return nullptr;
    slot->used = true;
    slot->object = T{};
    return &slot->object;
  }

  void give_back(T* object) {
    Slot* const slot = reinterpret_cast<Slot*>(object);
    slot->used = false;
    slot->next_freed = freed_;
    freed_ = slot;
  }

  // The object behind a handle, or null.
  T* find(const void* handle) {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots_);
    if (handle == nullptr || offset >= sizeof slots_ || offset % sizeof(Slot) != 0) return nullptr;
    Slot& slot = slots_[offset / sizeof(Slot)];
    return slot.used ? &slot.object : nullptr;
  }

  // `action` may release its object.
  template <class Action>
  void for_each(Action action) {
    for (std::size_t i = 0; i < reached_; ++i)
      if (slots_[i].used) action(slots_[i].object);
  }

 private:
  struct Slot {
    T object;  // first: a slot's address is its object's
    bool used;
    Slot* next_freed;
  };

  Slot* freed_or_first() {
    if (freed_ == nullptr) return reached_ == kSlots ? nullptr : &slots_[reached_++];
    Slot* const slot = freed_;
    freed_ = slot->next_freed;
    return slot;
  }

  Slot* next_unused() {
    for (std::size_t tried = 0; tried < kSlots; ++tried) {
      const std::size_t index = next_++ % kSlots;
      if (index == reached_) ++reached_;
      if (!slots_[index].used) return &slots_[index];
    }
    return nullptr;
  }

  Slot slots_[kSlots] = {};
  Slot* freed_ = nullptr;    // soon
  std::size_t next_ = 0;     // late
  std::size_t reached_ = 0;  // no slot from here on was ever used
};

}  // namespace fake_gpu
