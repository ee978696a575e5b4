// A program's GPU resources, by address or handle: blocks of memory, and what later calls refer to
// (mappings, pools, graphs).
//
// Driver calls are rare and cost microseconds, so one lock and one index suffice. The entries are
// in the session, where they outlive the process; nothing is sampled. The key includes the driver
// and the kind of key: a device address may also be a host address, and handles may be small
// numbers.
#pragma once

#include <cstdint>

#include "common/session/device_layout.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/session/index.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

struct DeviceName {
  session::Vendor vendor;
  session::DeviceKey what;
  std::uint64_t key;
};

// A copy of an entry, without its atomic word.
struct DeviceBlock {
  DeviceName name{};
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;
  std::uint64_t owner = 0;
  std::uint32_t holder = 0;
  std::uint32_t device = 0;
  std::uint32_t birth_s = 0;
  std::uint32_t references = 1;
  session::DeviceKind kind = session::DeviceKind::none;
  std::uint8_t flags = 0;

  bool is_live() const noexcept { return (flags & session::kDeviceDormant) == 0; }
};

class DeviceBlocks {
 public:
  // False: the table is full. An entry still recorded under the same name goes to `replaced` (its
  // end passed no hook); replaced.name.key is 0 if there was none.
  bool insert(InHook, const DeviceBlock&, DeviceBlock& replaced) noexcept;

  // False: there is no such entry.
  bool find(InHook, const DeviceName&, DeviceBlock& found) noexcept;
  bool remove(InHook, const DeviceName&, DeviceBlock& removed) noexcept;

  // Changes an entry in place: change(DeviceBlock&) may change all but its name, and returns
  // whether to keep the entry. False: there is none.
  template <class Change>
  bool change(InHook hook, const DeviceName& name, Change&& change) noexcept {
    const system::MutexGuard guard(lock_);
    if (!guard) return false;
    const std::uint32_t slot = slot_of(name);
    if (slot == 0) return false;
    DeviceBlock block = copy_of(slot);
    change(block) ? store(slot, block) : erase(hook, slot);
    return true;
  }

  // Visits all entries, in no order, under the lock: visit(DeviceBlock&) may change all but the
  // name, and may call is_owned().
  enum class Then : std::uint8_t { leave, changed, gone };
  template <class Visit>
  void for_each(InHook hook, Visit&& visit) noexcept {
    const system::MutexGuard guard(lock_);
    if (!guard) return;
    for (std::uint32_t slot = 1; slot < entries(); ++slot) {
      DeviceBlock block = copy_of(slot);
      if (block.name.key == 0) continue;
      const Then then = visit(block);
      if (then == Then::changed) store(slot, block);
      if (then == Then::gone) erase(hook, slot);
    }
  }

  // Whether there is such an entry of `owner`. For visitors.
  bool is_owned(const DeviceName& name, std::uint64_t owner) const noexcept {
    const std::uint32_t slot = slot_of(name);
    return slot != 0 && session::g_session.device_blocks.at(slot).owner == owner;
  }

  // After a fork: the session is the parent's.
  void reset(InHook) noexcept;

 private:
  static std::uint32_t entries() noexcept { return session::g_session.device_blocks.size(); }
  std::uint32_t slot_of(const DeviceName&) const noexcept;
  static DeviceBlock copy_of(std::uint32_t slot) noexcept;
  void store(std::uint32_t slot, const DeviceBlock&) noexcept;
  void erase(InHook, std::uint32_t slot) noexcept;

  system::Mutex lock_;
  session::Slots<session::DeviceBlock, &session::DeviceBlock::key> slots_;
  session::Index<session::Outgrown::unmap> index_;
};

}  // namespace oomrec::live
