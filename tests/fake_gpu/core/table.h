// A fixed table of objects; a handle of the front end is the address of a slot. Nothing is
// allocated, a handle that was never given out or has ended is told from a good one, and a slot is
// reused as late as possible, so that a stale handle stays stale.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_gpu {

template <class T, std::size_t kSlots>
class Table {
 public:
  // A new object, or null when the table is full.
  T* take() {
    for (std::size_t tried = 0; tried < kSlots; ++tried) {
      Slot& slot = slots_[next_];
      next_ = (next_ + 1) % kSlots;
      if (slot.used) continue;
      slot.used = true;
      slot.object = T{};
      if (next_ > reached_) reached_ = next_;
      if (next_ == 0) reached_ = kSlots;
      return &slot.object;
    }
    return nullptr;
  }

  void give_back(T* object) { reinterpret_cast<Slot*>(object)->used = false; }

  // The object behind a handle, or null.
  T* find(const void* handle) {
    const auto offset =
        reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots_);
    if (handle == nullptr || offset >= sizeof slots_ || offset % sizeof(Slot) != 0) return nullptr;
    Slot& slot = slots_[offset / sizeof(Slot)];
    return slot.used ? &slot.object : nullptr;
  }

  // `action` may give back the object it is shown.
  template <class Action>
  void for_each(Action action) {
    for (std::size_t i = 0; i < reached_; ++i)
      if (slots_[i].used) action(slots_[i].object);
  }

  void clear() {
    for_each([this](T& object) { give_back(&object); });
  }

 private:
  struct Slot {
    T object;  // first: a slot's address is its object's
    bool used;
  };

  Slot slots_[kSlots] = {};
  std::size_t next_ = 0;
  std::size_t reached_ = 0;  // no slot from here on was ever used
};

}  // namespace fake_gpu
