#include "recorder/state/looks.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/machine/page.h"
#include "common/residency/residency.h"
#include "common/system/files.h"
#include "common/system/memory.h"
#include "recorder/session/writer.h"
#include "recorder/state/counters.h"
#include "recorder/state/growth.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;
using session::kResidencyPages;
using session::ResidencyPage;

namespace {

constexpr std::size_t kTextBytes = 8192;
constexpr std::size_t kMostPieces = 16 * 1024;
constexpr std::size_t kBlocks = 512;

constinit std::atomic<bool> g_looking{false};

void enter(InHook hook, const residency::Look& look) noexcept {
  auto& table = g_session.residency;
  if (look.found.time_ns == 0 || (table.size() == 0 && !g_session.open_residency(hook))) return;
  std::atomic<std::uint32_t>& latest = g_session.header().latest_look;
  const std::uint32_t first = latest.load(std::memory_order_relaxed) == 1 ? 1 + kResidencyPages : 1;
  const std::size_t bytes =
      sizeof look.found + look.found.row_count * sizeof(session::ResidencyRow);
  const auto pages =
      static_cast<std::uint32_t>((bytes + sizeof(ResidencyPage) - 1) / sizeof(ResidencyPage));
  while (table.size() < first + pages)
    if (std::uint32_t added = 0; !table.append(hook, added, [](ResidencyPage&) noexcept {})) return;
  const auto* const from = reinterpret_cast<const std::byte*>(&look);
  for (std::uint32_t page = 0; page < pages; ++page)
    std::memcpy(&table.at(first + page), from + page * sizeof(ResidencyPage),
                sizeof(ResidencyPage));
  latest.store(first, std::memory_order_release);
}

// Returns the change of live bytes.
std::int64_t count_touched(InHook hook, ThreadState* thread, const residency::Piece& piece,
                           const live::Credit& credit) noexcept {
  const live::RangeChange change =
      g_state.ranges.set_touched(hook, piece.start, piece.end, piece.touched_bytes, credit);
  const Delta delta{change.added_bytes, change.added_count,
                    static_cast<std::uint64_t>(change.removed_count), change.added_bytes,
                    change.removed_bytes};
  // Published, else it would later look like an allocation that explains growth. Quietly: it would
  // check the limits, from where this look may come.
  if (thread != nullptr) {
    count_quietly(*thread, Space::map, delta);
    if (phase() == Phase::active) publish_quietly(*thread, Space::map);
  } else {
    count_unlaned(Space::map, delta);
  }
  return delta.live_bytes();
}

void move_shares(residency::Look& look) noexcept {
  g_state.ranges.for_each_share([&](const live::Growers::Share& share) noexcept {
    residency::move_share(look, {share.grower, g_session.holders.at(share.grower).node, 0,
                                 share.bytes, share.latest_s, share.reserving});
  });
}

}  // namespace

std::uint64_t look_at_pages(InHook hook, std::uint64_t most_ns) noexcept {
  if (system::is_sandboxed() || g_looking.exchange(true, std::memory_order_acquire)) return 0;
  const std::uint64_t began = system::monotonic_ns();
  const session::View view = g_session.view();
  const std::size_t pieces = std::min(residency::pieces_of(view), kMostPieces);
  const std::size_t bytes =
      machine::page_up(sizeof(residency::Look) + kTextBytes + kBlocks * sizeof(std::uint64_t) +
                       pieces * sizeof(residency::Piece));
  if (void* const memory = system::map_private(bytes)) {
    auto& found = *static_cast<residency::Look*>(memory);
    char* const text = static_cast<char*>(memory) + sizeof(residency::Look);
    auto* const blocks = reinterpret_cast<std::uint64_t*>(text + kTextBytes);
    auto* const first = reinterpret_cast<residency::Piece*>(blocks + kBlocks);
    ThreadState* const thread = current_thread(hook);
    GrowthOfLook samples{hook, thread};
    const std::size_t seen =
        residency::look_at(hook, 0, view, {{first, pieces}, {text, kTextBytes}, {blocks, kBlocks}},
                           residency::Deadline{most_ns}, found);
    const bool is_whole = found.found.flags == 0;
    NodeScope nodes{hook, thread};
    live::Credit credit{.sampled = samples.all(), .now_s = thread ? thread->birth_s() : 0};
    for (std::size_t i = 0; is_whole && i < seen; ++i) {
      if (!first[i].counts_once_touched) continue;
      if (thread != nullptr && credit.sampled.empty() && credit.running == 0)
        credit.running = running_grower(hook, *thread);
      found.found.live_bytes +=
          static_cast<std::uint64_t>(count_touched(hook, thread, first[i], credit));
    }
    if (is_whole) samples.end();
    move_shares(found);
    const session::Residency* const before = view.residency();
    if (before == nullptr || !residency::is_worse(found.found, *before)) enter(hook, found);
    g_session.header().health.live_bytes.store(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, live_bytes(nullptr))),
        std::memory_order_relaxed);
    system::unmap(memory, bytes);
  }
  g_looking.store(false, std::memory_order_release);
  return system::monotonic_ns() - began;
}

void prepare_looks(InHook hook) noexcept {
  auto& table = g_session.residency;
  std::uint32_t added = 0;
  if (table.size() == 0 && g_session.open_residency(hook))
    table.append(hook, added, [](ResidencyPage&) noexcept {});
}

void end_look() noexcept { g_looking.store(false, std::memory_order_relaxed); }

}  // namespace oomrec::recorder
