#include "recorder/process/object_heap.h"

#include <algorithm>
#include <atomic>

#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/system/mutex.h"
#include "common/system/pagemap.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::g_session;

constexpr std::uint64_t kPagesOfALook = 16 * 1024;
constexpr std::uint64_t kTimeBetween = 100;  // times what the last look took
constexpr std::uint32_t kMostRanges = 256;

struct Range {
  std::uint64_t start, end;
};

struct ObjectHeap {
  std::atomic<bool> exists{false};
  std::atomic<std::uint32_t> count{0};
  Range ranges[kMostRanges] = {};
  system::Mutex lock;  // for what is above
  std::atomic<std::int64_t> counted_bytes{0};
  std::atomic<bool> is_counted{false};       // as one block
  std::atomic<std::int64_t> grown_bytes{0};  // objects, since the last look
  std::atomic<bool> looking{false};          // owns the rest
  std::uint64_t next_look_ns = 0;
  bool pages[kPagesOfALook] = {};
};
constinit ObjectHeap g_heap;

void add(Range range) noexcept {
  const std::uint32_t count = g_heap.count.load(std::memory_order_relaxed);
  if (range.start >= range.end) return;
  if (count == kMostRanges) return drop();
  g_heap.ranges[count] = range;
  g_heap.count.store(count + 1, std::memory_order_relaxed);
}

// Without the lock held while the kernel looks: a thread may be mapping meanwhile.
bool range_at(std::uint32_t number, Range& range) noexcept {
  const system::MutexGuard guard(g_heap.lock);
  if (!guard || number >= g_heap.count.load(std::memory_order_relaxed)) return false;
  range = g_heap.ranges[number];
  return true;
}

std::uint64_t resident_bytes(const Range& range) noexcept {
  const std::uint64_t page_bytes = machine::page_bytes();
  std::uint64_t pages = 0;
  for (std::uint64_t at = range.start; at < range.end; at += kPagesOfALook * page_bytes) {
    const std::uint64_t bytes = std::min(range.end - at, kPagesOfALook * page_bytes);
    const std::uint64_t count = (bytes + page_bytes - 1) / page_bytes;
    if (system::read_resident_pages(at, count, g_heap.pages))
      pages += static_cast<std::uint64_t>(std::count(g_heap.pages, g_heap.pages + count, true));
  }
  return pages * page_bytes;
}

std::uint64_t resident_bytes() noexcept {
  std::uint64_t bytes = 0;
  Range range{};
  for (std::uint32_t i = 0; range_at(i, range); ++i) bytes += resident_bytes(range);
  return bytes;
}

// Of the pool, without its objects; negative: these are estimated to hold more than it has.
std::int64_t free_bytes(std::uint32_t pool) noexcept {
  return static_cast<std::int64_t>(
      live::full_holder(pool).live_bytes.load(std::memory_order_relaxed));
}

// The pool counts so many bytes more.
void count_more(InHook hook, std::uint32_t pool, std::int64_t more) noexcept {
  g_heap.counted_bytes.fetch_add(more, std::memory_order_relaxed);
  if (more > 0) {
    const auto bytes = static_cast<std::uint64_t>(more);
    const std::uint64_t first = g_heap.is_counted.exchange(true, std::memory_order_relaxed) ? 0 : 1;
    g_state.holders.grow(hook, pool, bytes, first);
    count(hook, registered_thread(), Space::map, {bytes, first, 0, bytes, 0});
  } else if (more < 0) {
    const auto bytes = static_cast<std::uint64_t>(-more);
    g_state.holders.shrink(hook, pool, bytes, 0);
    count(hook, registered_thread(), Space::map, {0, 0, 0, 0, bytes});
  }
  g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes.fetch_sub(
      static_cast<std::uint64_t>(more), std::memory_order_relaxed);
}

// What objects hold beyond the pool counts at once: after the next look they may be gone, and the
// peak would be one without them.
void cover_objects(InHook hook) noexcept {
  const std::uint32_t pool = g_state.object_pool_holder.load(std::memory_order_relaxed);
  const std::int64_t left = pool == 0 ? 0 : free_bytes(pool);
  if (left < 0) count_more(hook, pool, -left);
}

constexpr std::uint64_t kNow = ~std::uint64_t{0};

// At `now_ns`, unless that is too soon after the last look.
void look(InHook hook, std::uint64_t now_ns) noexcept {
  const std::uint32_t pool = g_state.object_pool_holder.load(std::memory_order_relaxed);
  if (pool == 0 || g_heap.looking.exchange(true, std::memory_order_acquire)) return;
  if (now_ns >= g_heap.next_look_ns) {
    const std::uint64_t begin = system::monotonic_ns();
    g_heap.grown_bytes.store(0, std::memory_order_relaxed);
    const auto resident = static_cast<std::int64_t>(resident_bytes());
    const std::uint64_t end = system::monotonic_ns();
    g_heap.next_look_ns = end + kTimeBetween * (end - begin);
    const std::int64_t counted = g_heap.counted_bytes.load(std::memory_order_relaxed);
    const std::int64_t of_objects = counted - free_bytes(pool);
    count_more(hook, pool, std::max(resident, of_objects) - counted);
  }
  g_heap.looking.store(false, std::memory_order_release);
}

}  // namespace

void start_object_heap() noexcept { g_heap.exists.store(true, std::memory_order_relaxed); }

bool has_object_heap() noexcept { return g_heap.exists.load(std::memory_order_relaxed); }

void add_object_heap(InHook, std::uint64_t address, std::uint64_t bytes) noexcept {
  const system::MutexGuard guard(g_heap.lock);
  if (guard) add({address, address + bytes});
}

void remove_object_heap(InHook, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (g_heap.count.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t end = address + bytes;
  const system::MutexGuard guard(g_heap.lock);
  if (!guard) return;
  for (std::uint32_t i = 0; i < g_heap.count.load(std::memory_order_relaxed);) {
    Range& range = g_heap.ranges[i];
    const Range whole = range;
    if (whole.end <= address || whole.start >= end) {
      ++i;
      continue;
    }
    const Range below{whole.start, std::min(whole.end, address)};
    const Range above{std::max(whole.start, end), whole.end};
    const std::uint32_t last = g_heap.count.load(std::memory_order_relaxed) - 1;
    range = g_heap.ranges[last];
    g_heap.count.store(last, std::memory_order_relaxed);
    add(below);
    add(above);
  }
}

std::uint64_t object_heap_growth(std::uint64_t bytes) noexcept {
  const std::uint32_t pool = g_state.object_pool_holder.load(std::memory_order_relaxed);
  const std::int64_t left = pool == 0 ? 0 : free_bytes(pool);
  const bool is_mostly_free = 2 * left > g_heap.counted_bytes.load(std::memory_order_relaxed);
  if (bytes < kLargeObject && !is_mostly_free) return bytes;
  return left <= 0 ? bytes : bytes - std::min(bytes, static_cast<std::uint64_t>(left));
}

void grow_object_heap(InHook hook, std::uint64_t bytes) noexcept {
  const std::uint32_t pool = g_state.object_pool_holder.load(std::memory_order_relaxed);
  if (pool != 0) count_more(hook, pool, static_cast<std::int64_t>(object_heap_growth(bytes)));
}

void shrink_object_heap(InHook hook, std::uint64_t bytes) noexcept {
  const std::uint32_t pool = g_state.object_pool_holder.load(std::memory_order_relaxed);
  if (pool != 0) count_more(hook, pool, -static_cast<std::int64_t>(bytes));
}

void update_object_heap(InHook hook) noexcept {
  if (has_object_heap()) look(hook, system::monotonic_ns());
}

void measure_object_heap(InHook hook) noexcept {
  if (has_object_heap()) look(hook, kNow);
}

void count_object_growth(InHook hook, std::int64_t bytes) noexcept {
  if (!has_object_heap()) return;
  if (bytes > 0) cover_objects(hook);
  const auto limit = static_cast<std::int64_t>(g_state.limit.bytes());
  if (limit == 0) return;
  const std::int64_t counted = g_heap.counted_bytes.load(std::memory_order_relaxed);
  const std::int64_t grown = g_heap.grown_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (grown >= std::max<std::int64_t>((limit - counted) / 4, kLargeObject)) look(hook, kNow);
}

void forget_object_heap(InHook hook) noexcept {
  reset_object_heap_after_fork(hook);
  g_heap.count.store(0, std::memory_order_relaxed);
}

void reset_object_heap_after_fork(InHook) noexcept {
  g_heap.lock.unlock();  // its owner may not exist in the child
  g_heap.looking.store(false, std::memory_order_relaxed);
  g_heap.grown_bytes.store(0, std::memory_order_relaxed);
  g_heap.counted_bytes.store(0, std::memory_order_relaxed);
  g_heap.is_counted.store(false, std::memory_order_relaxed);
  g_heap.next_look_ns = 0;
}

}  // namespace oomrec::recorder
