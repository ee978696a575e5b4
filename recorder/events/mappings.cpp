#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "common/machine/page.h"
#include "recorder/events/in_flight.h"
#include "recorder/events/mappings.h"
#include "recorder/events/objects.h"
#include "recorder/events/shared_memory.h"
#include "recorder/process/object_heap.h"
#include "recorder/process/preexisting.h"
#include "recorder/python/interpreter.h"
#include "recorder/session/writer.h"
#include "recorder/stack/modules.h"
#include "recorder/stack/stack.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/growth.h"
#include "recorder/state/looks.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::recorder {

using session::g_session;
using session::RangeKind;

namespace {

constexpr int kStackFlags = MAP_STACK | MAP_GROWSDOWN;

bool anonymous(const Mapping& mapping) noexcept {
  return !mapping.file && (mapping.flags & kStackFlags) == 0;
}

// Of a coroutine (those of threads are mapped by the C library, which no hook sees). Most of it is
// never touched.
bool is_own_stack(const Mapping& mapping) noexcept {
  return !mapping.file && (mapping.flags & kStackFlags) != 0 &&
         mapping.bytes >= session::kLookBytes;
}

// Of such an interpreter even small mappings with MAP_NORESERVE may be its heap's.
bool may_have_object_heap() noexcept {
  const stack::Interpreter& python = stack::g_interpreter;
  return python.has_own_heap.load(std::memory_order_relaxed) || python.may_have_own_heap;
}

// jemalloc maps what it hands out with MAP_NORESERVE. Where a certain address was asked for, as by
// mimalloc, or from this size on, such a mapping is address space for later, although writable.
constexpr std::uint64_t kReservedBytes = std::uint64_t{1} << 30;

// Of a sparse reservation, a piece of this size that becomes writable at once is for later, too: V8
// does that with all 512 MiB of its code, and drops the pages.
constexpr std::uint64_t kLargePieceBytes = std::uint64_t{64} << 20;

live::Sparse sparseness_of(InHook hook, std::uint64_t address, std::uint64_t bytes,
                           int protection) noexcept {
  const bool is_large = (protection & PROT_WRITE) != 0 && bytes >= kLargePieceBytes;
  return is_large ? g_state.ranges.sparseness_of(hook, address, bytes) : live::Sparse::no;
}

RangeKind kind_of(const Mapping& mapping) noexcept {
  if (mapping.file && mapping.bytes >= session::kLookBytes) {
    if (mapping.in_memory) return RangeKind::memory_file;
    if ((mapping.flags & MAP_SHARED) == 0) return RangeKind::private_file;
  }
  if (!anonymous(mapping)) return RangeKind::other;
  const bool is_reserved =
      (mapping.flags & MAP_NORESERVE) != 0 &&
      (mapping.hinted || mapping.bytes >= kReservedBytes || may_have_object_heap());
  if (mapping.protection == PROT_NONE || is_reserved || mapping.for_later)
    return RangeKind::reservation;
  return (mapping.protection & PROT_WRITE) != 0 ? RangeKind::counted : RangeKind::other;
}

// The origin of a call that changes mappings.
struct Caller {
  ThreadState* thread;
  std::uint32_t node = 0;
  std::uint32_t holder = 0;
};

// What of a mapping counts.
enum class Use : std::uint8_t { none, once_touched, all };

// A reservation that needs no mprotect() before it is used. That of an interpreter's heap is
// counted by the pool of its objects.
Use use_of(const Mapping& mapping, RangeKind kind) noexcept {
  switch (kind) {
    case RangeKind::counted:
      return Use::all;
    case RangeKind::reservation:
      return (mapping.protection & PROT_WRITE) != 0 && !may_have_object_heap() ? Use::once_touched
                                                                               : Use::none;
    case RangeKind::private_file:  // one that cannot be written may be by mprotect(), later
      return (mapping.protection & PROT_WRITE) != 0 ? Use::once_touched : Use::none;
    case RangeKind::memory_file:
      return Use::once_touched;
    case RangeKind::other:
      return is_own_stack(mapping) ? Use::once_touched : Use::none;
    case RangeKind::none:
      break;
  }
  return Use::none;
}

Caller caller(InHook hook, NodeScope& nodes, std::uint64_t bytes, Api api, Use use) noexcept {
  const bool counts = use == Use::all;
  Caller from{thread_for(hook, counts ? bytes : 0)};
  if (from.thread == nullptr) return from;
  nodes.begin(*from.thread);
  from.thread->mapped_bytes += bytes;
  maybe_read_clock(hook, *from.thread);
  const std::uint64_t arena_bytes = std::exchange(from.thread->announced_arena_bytes, 0);
  if (counts && arena_bytes == bytes) {
    from.holder = object_pool_holder(hook);
    from.node = g_session.holders.at(from.holder).node;
    return from;
  }
  from.node =
      stack::capture(hook, from.thread->stacks, from.thread->root(hook), stack::Waiting::included);
  from.thread->mark_served(from.node);
  if (use != Use::none)
    from.holder = g_state.holders.find_or_add(hook, from.node, Space::map, api, 0);
  return from;
}

// Whether the interpreter has reserved it for its own heap (recorder/process/object_heap.h).
bool is_object_heap(InHook hook, const Mapping& mapping, const Caller& from) noexcept {
  const stack::Interpreter& python = stack::g_interpreter;
  if (!may_have_object_heap()) return false;
  if (from.node == 0 || (mapping.flags & MAP_NORESERVE) == 0 ||
      (mapping.protection & PROT_WRITE) == 0 || !python.ready.load(std::memory_order_acquire))
    return false;
  const std::uint64_t frame = g_session.node(from.node).frame;
  return session::kind_of(frame) == session::FrameKind::native &&
         session::module_of(frame) ==
             stack::module_at(hook, reinterpret_cast<std::uint64_t>(python.attached_state)).id;
}

std::uint32_t birth_s(const Caller& from) noexcept {
  return from.thread == nullptr ? 0 : from.thread->birth_s();
}

void count_change(InHook hook, const Caller& from, Api api,
                  const live::RangeChange& change) noexcept {
  if (from.thread != nullptr && change.added_bytes >= kInFlightBytes)
    end_in_flight(*from.thread->lane);
  if (phase() == Phase::active) {
    auto& reserved = g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
    reserved.fetch_add(static_cast<std::uint64_t>(change.reserved_bytes),
                       std::memory_order_relaxed);
    if (change.dropped != 0) drop(change.dropped);
  }
  if (from.thread != nullptr && change.added_bytes != 0)
    tally_allocation(*from.thread, api, change.added_bytes, 1);
  count(hook, from.thread, Space::map,
        {change.added_bytes, change.added_count, static_cast<std::uint64_t>(change.removed_count),
         change.added_bytes, change.removed_bytes});
}

// What counts once it is touched.
void reserve(InHook hook, const Caller& from, Api api, std::uint64_t address, std::uint64_t bytes,
             RangeKind kind) noexcept {
  count_change(hook, from, api,
               g_state.ranges.reserve(hook, address, bytes, kind, from.holder, birth_s(from)));
  if (kind == RangeKind::reservation && from.thread != nullptr)
    on_reservation(hook, *from.thread, from.holder);
}

}  // namespace

bool is_for_later(InHook hook, std::uint64_t bytes, const void* caller) noexcept {
  if (bytes < kLargePieceBytes || phase() != Phase::active) return false;
  const NodeScope nodes{hook};
  const std::uint32_t slot =
      stack::module_slot_at(hook, reinterpret_cast<std::uint64_t>(caller) - 1);
  if (slot == 0) return false;
  symbols::ElfSymbols module{hook, stack::loaded_module(slot).mapped.start};
  return module.address_of(hook, "rb_cObject") != 0;
}

bool may_be_in_memory(const Mapping& mapping) noexcept {
  return mapping.file && (mapping.flags & MAP_SHARED) != 0 &&
         (mapping.protection & PROT_WRITE) != 0 && mapping.bytes >= session::kLookBytes;
}

void on_map(InHook hook, const Mapping& mapping) noexcept {
  if (phase() == Phase::off) return;
  if ((mapping.flags & MAP_FIXED) != 0)  // it replaces what was there
    stack::on_unmapped(hook, mapping.address, mapping.bytes);
  const RangeKind kind = kind_of(mapping);
  const Use use = use_of(mapping, kind);
  NodeScope nodes{hook};
  const Caller from = caller(hook, nodes, mapping.bytes, mapping.api, use);
  if (use == Use::once_touched)
    reserve(hook, from, mapping.api, mapping.address, mapping.bytes, kind);
  else
    count_change(hook, from, mapping.api,
                 g_state.ranges.map(hook, mapping.address, mapping.bytes, kind, anonymous(mapping),
                                    from.holder, birth_s(from)));
  if (kind == RangeKind::reservation && (mapping.flags & MAP_NORESERVE) != 0 &&
      mapping.bytes >= kLargePieceBytes)
    g_state.ranges.set_sparse(hook, mapping.address, mapping.bytes);
  if (kind == RangeKind::reservation && is_object_heap(hook, mapping, from)) {
    object_pool_holder(hook);
    add_object_heap(hook, mapping.address, mapping.bytes);
    if (g_on_object_heap != nullptr) g_on_object_heap(hook);
  }
  if (from.thread != nullptr) {
    append_event(*from.thread, EventKind::map, mapping.api, mapping.address, mapping.bytes,
                 from.node);
  }
}

void add_preexisting_mapping(InHook hook, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (phase() != Phase::active) return;
  const std::uint32_t holder = preexisting_holder(hook, Space::map, 0);
  // A large one may be an allocator's reservation: what of it is touched counts.
  const live::RangeChange change =
      bytes >= kLargePieceBytes
          ? g_state.ranges.reserve(hook, address, bytes, RangeKind::reservation, holder, 0)
          : g_state.ranges.map(hook, address, bytes, RangeKind::counted, true, holder, 0);
  g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.fetch_add(
      static_cast<std::uint64_t>(change.reserved_bytes), std::memory_order_relaxed);
  if (change.dropped != 0) drop(change.dropped);
  count_unlaned(Space::map, {change.added_bytes, change.added_count, 0, change.added_bytes, 0});
}

void look_at_preexisting(InHook hook) noexcept {
  if (phase() != Phase::active || g_state.ranges.usable_bytes() == 0) return;
  look_at_pages(hook, kBriefLookNs);
  const session::Residency* const look = g_session.view().residency();
  if (look != nullptr && (look->flags & session::kResidencyPartial) == 0) return;
  const live::RangeChange all = g_state.ranges.set_all_touched(hook);
  count_unlaned(Space::map, {all.added_bytes, 0, 0, all.added_bytes, all.removed_bytes});
}

void on_unmap(InHook hook, Api api, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (phase() == Phase::off) return;
  stack::on_unmapped(hook, address, bytes);
  if (phase() == Phase::active) release_shared_file(address, bytes);
  remove_object_heap(hook, address, bytes);
  const Caller from{current_thread(hook)};
  count_change(hook, from, api, g_state.ranges.unmap(hook, address, bytes));
  if (from.thread == nullptr) return;
  maybe_read_clock(hook, *from.thread);
  append_event(*from.thread, EventKind::unmap, api, address, bytes, 0);
}

void on_remap(InHook hook, std::uint64_t old_address, std::uint64_t old_bytes,
              std::uint64_t new_address, std::uint64_t new_bytes, OldRange old) noexcept {
  if (phase() == Phase::off) return;
  stack::on_unmapped(hook, old_address, old_bytes);
  const bool old_stays = old == OldRange::stays;
  const bool counts = !old_stays || g_state.ranges.counted_bytes(hook, old_address, 1) != 0;
  const std::uint64_t growth = old_stays ? new_bytes : new_bytes - std::min(old_bytes, new_bytes);
  NodeScope nodes{hook};
  const Caller from = caller(hook, nodes, growth, Api::mremap, counts ? Use::all : Use::none);
  const RangeKind kind = counts ? RangeKind::counted : RangeKind::other;
  count_change(hook, from, Api::mremap,
               old_stays ? g_state.ranges.map(hook, new_address, new_bytes, kind, true, from.holder,
                                              birth_s(from))
                         : g_state.ranges.remap(hook, old_address, old_bytes, new_address,
                                                new_bytes, from.holder, birth_s(from)));
  if (from.thread == nullptr) return;
  if (!old_stays)
    append_event(*from.thread, EventKind::unmap, Api::mremap, old_address, old_bytes, 0);
  append_event(*from.thread, EventKind::remap, Api::mremap, new_address, new_bytes, from.node);
}

void on_protect(InHook hook, std::uint64_t address, std::uint64_t bytes, int protection) noexcept {
  if ((protection & PROT_READ) == 0) stack::on_unmapped(hook, address, bytes);
  if (phase() == Phase::off || ((protection & PROT_WRITE) == 0 && protection != PROT_NONE)) return;
  const live::Sparse sparseness = sparseness_of(hook, address, bytes, protection);
  if (sparseness == live::Sparse::usable) return;
  if (sparseness == live::Sparse::reserved) {
    NodeScope nodes{hook};
    const Caller from = caller(hook, nodes, 0, Api::mprotect, Use::once_touched);
    return reserve(hook, from, Api::mprotect, address, bytes, RangeKind::reservation);
  }
  const std::uint64_t newly = counted_by_protect(hook, address, bytes, protection);
  const bool given_up =
      protection == PROT_NONE && g_state.ranges.counted_bytes(hook, address, bytes) != 0;
  const bool has_file =
      (protection & PROT_WRITE) != 0 && g_state.ranges.has_unwritten_file(hook, address, bytes);
  if (newly == 0 && !given_up && !has_file) return;
  NodeScope nodes{hook};
  const Caller from = caller(hook, nodes, newly, Api::mprotect,
                             newly != 0 ? Use::all
                             : has_file ? Use::once_touched
                                        : Use::none);
  count_change(
      hook, from, Api::mprotect,
      g_state.ranges.protect(hook, address, bytes, protection, from.holder, birth_s(from)));
  if (from.thread == nullptr || (newly == 0 && !given_up)) return;
  const EventKind kind = newly != 0 ? EventKind::map : EventKind::unmap;
  append_event(*from.thread, kind, Api::mprotect, address, newly != 0 ? newly : bytes, from.node);
}

void on_break(InHook hook, Api api, std::uint64_t old_break, std::uint64_t new_break) noexcept {
  if (phase() == Phase::off || old_break == new_break || old_break == 0 || new_break == 0) return;
  // The kernel maps whole pages: the rest of the old break's page is mapped already.
  const std::uint64_t low = machine::page_up(old_break < new_break ? old_break : new_break);
  const std::uint64_t high = machine::page_up(old_break < new_break ? new_break : old_break);
  if (new_break < old_break) return on_unmap(hook, api, low, high - low);
  NodeScope nodes{hook};
  const Caller from = caller(hook, nodes, high - low, api, Use::all);
  count_change(hook, from, api,
               g_state.ranges.map(hook, low, high - low, RangeKind::counted, true, from.holder,
                                  birth_s(from), live::Growth::extend));
  if (from.thread != nullptr) {
    append_event(*from.thread, EventKind::map, api, low, high - low, from.node);
  }
}

bool is_known(InHook hook, std::uint64_t address, std::uint64_t bytes) noexcept {
  return phase() != Phase::off && (g_state.ranges.counted_bytes(hook, address, bytes) != 0 ||
                                   g_state.ranges.promotable_bytes(hook, address, bytes) != 0);
}

std::uint64_t counted_bytes(InHook hook, const Mapping& mapping) noexcept {
  if (phase() == Phase::off || kind_of(mapping) != RangeKind::counted) return 0;
  const std::uint64_t bytes = machine::page_up(mapping.bytes);
  if ((mapping.flags & MAP_FIXED) == 0) return bytes;
  const std::uint64_t there = g_state.ranges.counted_bytes(hook, mapping.address, bytes);
  return bytes > there ? bytes - there : 0;
}

std::uint64_t counted_by_protect(InHook hook, std::uint64_t address, std::uint64_t bytes,
                                 int protection) noexcept {
  if (phase() == Phase::off || (protection & PROT_WRITE) == 0) return 0;
  if (sparseness_of(hook, address, bytes, protection) != live::Sparse::no) return 0;
  return g_state.ranges.promotable_bytes(hook, address, bytes);
}

std::uint64_t counted_by_remap(InHook hook, std::uint64_t old_address,
                               std::uint64_t growth) noexcept {
  if (phase() == Phase::off || growth == 0) return 0;
  return g_state.ranges.counted_bytes(hook, old_address, 1) != 0 ? machine::page_up(growth) : 0;
}

}  // namespace oomrec::recorder
