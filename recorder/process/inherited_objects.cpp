#include "recorder/process/inherited_objects.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "common/system/memory.h"
#include "recorder/session/writer.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {
namespace {

using session::g_session;

constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

std::uint32_t row_of(std::span<const std::uint32_t> holders, std::uint32_t holder) noexcept {
  const auto found = std::find(holders.begin(), holders.end(), holder);
  return holder == 0 || found == holders.end()
             ? kNoRow
             : static_cast<std::uint32_t>(found - holders.begin());
}

}  // namespace

void InheritedObjects::clear(InHook) noexcept {
  if (entries_ != nullptr) system::unmap(entries_, capacity_ * sizeof(Entry));
  entries_ = nullptr;
  capacity_ = count_ = 0;
}

bool InheritedObjects::insert(const Entry& entry) noexcept {
  if (count_ >= capacity_ - capacity_ / 4) return false;
  std::uint32_t at = place_of(entry.address, capacity_);
  while (entries_[at].address != 0) at = (at + 1) & (capacity_ - 1);
  entries_[at] = entry;
  ++count_;
  return true;
}

void InheritedObjects::copy(InHook hook, std::span<const std::uint32_t> holders,
                            std::span<const std::uint32_t> own_holders) noexcept {
  InheritedObjects own = *this;  // by which the parent keeps what it had inherited itself
  entries_ = nullptr;
  capacity_ = count_ = 0;
  const bool any =
      std::any_of(holders.begin(), holders.end(), [](auto holder) { return holder != 0; });
  if (const std::uint32_t objects = g_state.objects.count(); any && objects != 0) {
    const std::uint32_t capacity = std::bit_ceil(std::max(2 * objects, std::uint32_t{256}));
    entries_ = static_cast<Entry*>(system::map_private(capacity * sizeof(Entry)));
    if (entries_ != nullptr) capacity_ = capacity;
  }
  const auto keep = [&](std::uint64_t address, std::uint32_t holder, std::uint64_t bytes,
                        std::uint32_t weight) noexcept {
    const std::uint32_t row = row_of(holders, holder);
    return row == kNoRow || bytes > UINT16_MAX || !g_state.objects.holds(address) ||
           insert({address, weight, static_cast<std::uint16_t>(bytes),
                   static_cast<std::uint8_t>(row)});
  };
  // As a reader: the parent's threads may change an entry meanwhile.
  const session::View view = g_session.view();
  const std::uint32_t blocks = capacity_ == 0 ? 0 : g_session.live_blocks.size();
  session::LiveBlock block;
  for (std::uint32_t i = 1; i < blocks; ++i) {
    if (view.read(session::TableId::live_blocks, i, block) &&
        !keep(block.address, block.holder, block.bytes, block.weight))
      break;
  }
  for (std::uint32_t i = 0; capacity_ != 0 && i < own.capacity_; ++i) {
    const Entry& entry = own.entries_[i];
    if (entry.weight != 0 &&
        !keep(entry.address, own_holders[entry.row], entry.bytes, entry.weight))
      break;
  }
  own.clear(hook);
}

bool InheritedObjects::take(InHook, std::uint64_t address, Object& taken) noexcept {
  if (capacity_ == 0) return false;
  for (std::uint32_t at = place_of(address, capacity_); entries_[at].address != 0;
       at = (at + 1) & (capacity_ - 1)) {
    Entry& entry = entries_[at];
    if (entry.address != address) continue;
    const std::uint32_t weight = std::atomic_ref(entry.weight).exchange(0);
    taken = {std::uint64_t{entry.bytes} * weight, weight, entry.row};
    return weight != 0;
  }
  return false;
}

}  // namespace oomrec::recorder
