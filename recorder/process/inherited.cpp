#include "recorder/process/inherited.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>

#include "common/session/view.h"
#include "common/system/memory.h"
#include "recorder/process/preexisting.h"
#include "recorder/session/writer.h"
#include "recorder/stack/copied_stacks.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::g_session;
using session::Holder;
using stack::CopiedStacks;

constexpr std::uint64_t kSmallest = 64 * 1024;  // the rest is one holder

struct Inherited {
  CopiedStacks stacks;
  struct Row {
    std::uint64_t bytes, count;
    Space space;
    std::uint8_t flags;
    std::uint32_t holder;  // in the child's session; 0: none yet
  };
  std::array<Row, CopiedStacks::kMost> rows{};  // of the stacks
  InheritedObjects objects;
  bool has_pool = false;
};
constinit Inherited g_inherited{};

bool is_worth_a_name(const Holder& holder) noexcept {
  const auto space = static_cast<Space>(holder.space);
  return (space == Space::heap || space == Space::python) && holder.live_bytes >= kSmallest &&
         holder.live_bytes <= INT64_MAX;
}

// Frees are assigned by size, so one of the figures may reach zero first.
void shrink(InHook hook, std::uint32_t number, std::uint64_t bytes) noexcept {
  g_state.holders.shrink_at_most(hook, number, bytes, 1);
  Holder& holder = live::full_holder(number);
  if (holder.live_bytes != 0 && holder.live_count != 0) return;
  holder.live_bytes.store(0, std::memory_order_relaxed);
  holder.live_count.store(0, std::memory_order_relaxed);
}

// A block may be a little larger than the mean of its holder.
bool is_block_of(std::uint64_t usable_bytes, std::uint64_t bytes, std::uint64_t count) noexcept {
  const std::uint64_t mean = count == 0 ? 0 : bytes / count;
  return mean != 0 && usable_bytes >= mean && usable_bytes - mean <= 64 + mean / 16;
}

std::span<Inherited::Row> rows() noexcept {
  return std::span{g_inherited.rows}.first(g_inherited.stacks.count());
}

// In the child's session: the row's holder, with what the child has not freed. False: there is
// nothing, or a table is full.
bool add_holder(InHook hook, std::uint32_t number) noexcept {
  Inherited::Row& row = g_inherited.rows[number];
  if (row.count == 0 || row.bytes == 0) return false;
  const std::uint64_t marker = session::special_frame(session::SpecialFrame::inherited, 0);
  constexpr auto kFlags = static_cast<std::uint8_t>(~session::kHolderCandidate);
  const std::uint32_t group = group_node(hook, g_inherited.stacks.group(number));
  const std::uint32_t root = stack::intern(hook, group, marker);
  const std::uint32_t leaf = root == 0 ? 0 : g_inherited.stacks.intern(hook, number, root);
  if (leaf == 0) return false;
  row.holder =
      g_state.holders.find_or_add(hook, leaf, row.space, Api::inherited, row.flags & kFlags);
  if (row.holder == 0) return false;
  g_state.holders.grow(hook, row.holder, row.bytes, row.count);
  return true;
}

// In the child's session: the one whose blocks have this size, else the rest; if nothing is left of
// that, the largest.
std::uint32_t holder_of_block(std::uint64_t usable_bytes) noexcept {
  std::uint32_t largest = 0;
  std::uint64_t most = 0;
  for (const Inherited::Row& row : rows()) {
    if (row.holder == 0 || row.space != Space::heap) continue;
    const Holder& holder = live::full_holder(row.holder);
    if (is_block_of(usable_bytes, holder.live_bytes, holder.live_count)) return row.holder;
    if (holder.live_bytes > most) {
      most = holder.live_bytes;
      largest = row.holder;
    }
  }
  const std::uint32_t rest = g_state.inherited_holder;
  const bool has_rest = rest != 0 && live::full_holder(rest).live_bytes != 0;
  return has_rest ? rest : largest;
}

}  // namespace

void copy_inherited(InHook hook) noexcept {
  CopiedStacks& stacks = g_inherited.stacks;
  // By row, those of Python's objects: the parent's, and in its session those that have a row now.
  std::array<std::uint32_t, CopiedStacks::kMost> own_holders{}, holders{};
  for (std::uint32_t i = 0; i < stacks.count(); ++i)
    if (g_inherited.rows[i].space == Space::python) own_holders[i] = g_inherited.rows[i].holder;
  stacks.clear();
  std::array<live::LargeHolder, 2 * CopiedStacks::kMost> rows;  // of all spaces
  std::span<live::LargeHolder> largest{rows};
  if (!g_state.holders.candidates().largest(hook, largest)) largest = {};
  for (const live::LargeHolder& row : largest) {
    const Holder& holder = live::full_holder(row.holder);
    if (!is_worth_a_name(holder) || !stacks.add(hook, holder.node)) continue;
    const std::uint32_t number = stacks.count() - 1;
    const auto space = static_cast<Space>(holder.space);
    g_inherited.rows[number] = {holder.live_bytes, holder.live_count, space, holder.flags, 0};
    if (space == Space::python) holders[number] = row.holder;
    if (stacks.count() == CopiedStacks::kMost) break;
  }
  g_inherited.objects.copy(hook, holders, own_holders);
  g_inherited.has_pool = g_state.object_pool_holder.load() != 0;
}

bool inherits_pool() noexcept { return g_inherited.has_pool; }

void add_inherited_heap(InHook hook, std::uint32_t node, std::uint64_t live_bytes,
                        std::uint64_t live_count) noexcept {
  for (std::uint32_t i = 0; i < g_inherited.stacks.count(); ++i) {
    const Inherited::Row& row = g_inherited.rows[i];
    // Larger: freed before the session began.
    if (row.space != Space::heap || row.bytes > live_bytes || !add_holder(hook, i)) continue;
    live_bytes -= row.bytes;
    live_count -= row.count < live_count ? row.count : live_count;
  }
  if (live_count == 0 || live_bytes == 0) live_count = live_bytes = 0;
  g_state.inherited_holder =
      g_state.holders.find_or_add(hook, node, Space::heap, Api::inherited, 0);
  if (g_state.inherited_holder != 0)
    g_state.holders.grow(hook, g_state.inherited_holder, live_bytes, live_count);
}

void add_inherited_objects(InHook hook) noexcept {
  for (std::uint32_t i = 0; i < g_inherited.stacks.count(); ++i) {
    const Inherited::Row& row = g_inherited.rows[i];
    if (row.space != Space::python || !add_holder(hook, i)) continue;
    if (const std::uint32_t pool = g_state.object_pool_holder.load(); pool != 0)
      g_state.holders.shrink(hook, pool, row.bytes, 0);
  }
}

void release_inherited(InHook hook, std::uint64_t usable_bytes) noexcept {
  if (phase() == Phase::active) {
    const std::uint32_t number = holder_of_block(usable_bytes);
    if (number != 0 && number == g_state.preexisting_holder)
      release_preexisting(hook, usable_bytes);
    else if (number != 0)
      shrink(hook, number, usable_bytes);
    return;
  }
  for (Inherited::Row& row : rows()) {
    if (row.space != Space::heap || !is_block_of(usable_bytes, row.bytes, row.count)) continue;
    row.bytes -= std::min(row.bytes, usable_bytes);
    --row.count;
    return;
  }
}

void release_inherited_object(InHook hook, std::uint64_t address) noexcept {
  InheritedObjects::Object object;
  if (!g_inherited.objects.take(hook, address, object)) return;
  Inherited::Row& row = g_inherited.rows[object.row];
  if (phase() != Phase::active) {
    row.bytes -= std::min(row.bytes, object.bytes);
    row.count -= std::min<std::uint64_t>(row.count, object.weight);
    return;
  }
  if (row.holder == 0) return;
  const std::uint64_t live = live::full_holder(row.holder).live_bytes;
  g_state.holders.shrink_at_most(hook, row.holder, object.bytes, object.weight);
  if (const std::uint32_t pool = g_state.object_pool_holder.load(); pool != 0)
    g_state.holders.restore(hook, pool, std::min(live, object.bytes), 0);
}

void forget_inherited(InHook hook) noexcept {
  g_inherited.stacks.clear();
  g_inherited.rows = {};
  g_inherited.objects.clear(hook);
  g_inherited.has_pool = false;
}

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
