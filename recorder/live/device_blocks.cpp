#include "recorder/live/device_blocks.h"

namespace oomrec::live {

using session::g_session;

namespace {

std::uint64_t hash_of(const DeviceName& name) noexcept {
  const auto space =
      static_cast<std::uint64_t>(name.what) << 1 | static_cast<std::uint64_t>(name.vendor);
  return session::mix(name.key ^ space << 56);
}

}  // namespace

std::uint32_t DeviceBlocks::slot_of(const DeviceName& name) const noexcept {
  return index_.find(hash_of(name), [&](std::uint32_t slot) noexcept {
    const session::DeviceBlock& entry = g_session.device_blocks.at(slot);
    return entry.key.load(std::memory_order_relaxed) == name.key &&
           entry.what == static_cast<std::uint8_t>(name.what) &&
           entry.vendor == static_cast<std::uint8_t>(name.vendor);
  });
}

DeviceBlock DeviceBlocks::copy_of(std::uint32_t slot) noexcept {
  const session::DeviceBlock& entry = g_session.device_blocks.at(slot);
  DeviceBlock block;
  block.name = {static_cast<session::Vendor>(entry.vendor),
                static_cast<session::DeviceKey>(entry.what),
                entry.key.load(std::memory_order_relaxed)};
  block.bytes = entry.bytes;
  block.context = entry.context;
  block.owner = entry.owner;
  block.holder = entry.holder;
  block.device = entry.device;
  block.birth_s = entry.birth_s;
  block.references = entry.references;
  block.kind = static_cast<session::DeviceKind>(entry.kind);
  block.flags = entry.flags;
  return block;
}

void DeviceBlocks::store(std::uint32_t slot, const DeviceBlock& block) noexcept {
  session::DeviceBlock& entry = g_session.device_blocks.at(slot);
  slots_.write(entry, block.name.key, [&]() noexcept {
    entry.bytes = block.bytes;
    entry.context = block.context;
    entry.owner = block.owner;
    entry.holder = block.holder;
    entry.device = block.device;
    entry.birth_s = block.birth_s;
    entry.references = block.references;
    entry.vendor = static_cast<std::uint8_t>(block.name.vendor);
    entry.what = static_cast<std::uint8_t>(block.name.what);
    entry.kind = static_cast<std::uint8_t>(block.kind);
    entry.flags = block.flags;
  });
}

void DeviceBlocks::erase(InHook, std::uint32_t slot) noexcept {
  index_.erase(hash_of(copy_of(slot).name),
               [slot](std::uint32_t at) noexcept { return at == slot; });
  slots_.give_back(g_session.device_blocks, slot);
}

bool DeviceBlocks::insert(InHook hook, const DeviceBlock& block, DeviceBlock& replaced) noexcept {
  replaced.name.key = 0;
  const system::MutexGuard guard(lock_);
  if (!guard || entries() == 0 || block.name.key == 0) return false;
  std::uint32_t slot = slot_of(block.name);
  if (slot != 0) {
    replaced = copy_of(slot);
    store(slot, block);
    return true;
  }
  if (!slots_.take(hook, g_session.device_blocks, slot)) return false;
  if (!index_.insert(hook, hash_of(block.name), slot)) {
    slots_.give_back(g_session.device_blocks, slot);
    return false;
  }
  store(slot, block);
  return true;
}

bool DeviceBlocks::find(InHook, const DeviceName& name, DeviceBlock& found) noexcept {
  const system::MutexGuard guard(lock_);
  const std::uint32_t slot = guard ? slot_of(name) : 0;
  if (slot != 0) found = copy_of(slot);
  return slot != 0;
}

bool DeviceBlocks::remove(InHook hook, const DeviceName& name, DeviceBlock& removed) noexcept {
  const system::MutexGuard guard(lock_);
  const std::uint32_t slot = guard ? slot_of(name) : 0;
  if (slot == 0) return false;
  removed = copy_of(slot);
  erase(hook, slot);
  return true;
}

void DeviceBlocks::reset(InHook hook) noexcept {
  lock_.unlock();
  slots_.reset();
  index_.reset(hook);
}

}  // namespace oomrec::live
