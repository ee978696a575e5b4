#include "recorder/forget/forget.h"

#include <algorithm>
#include <utility>

#include "common/system/files.h"
#include "recorder/forget/forgotten_rows.h"
#include "recorder/forget/references.h"
#include "recorder/forget/shared_work.h"
#include "recorder/forget/thinning.h"
#include "recorder/helper/helper.h"
#include "recorder/python/codes.h"
#include "recorder/session/node_states.h"
#include "recorder/session/shortage.h"
#include "recorder/session/writer.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/module_entries.h"
#include "recorder/stack/modules.h"
#include "recorder/state/labels.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_forget_at;
using session::g_node_states;
using session::g_session;
using session::NodeStates;

namespace {

// A slice is some ten microseconds.
constexpr std::uint32_t kLanesAtOnce = 128;
constexpr std::uint32_t kNodesAtOnce = 1024;
constexpr std::uint32_t kNodesOfPart = 32;
constexpr std::uint32_t kRetiredAtOnce = 32;
constexpr std::uint32_t kLabelsAtOnce = 256;
constexpr std::uint32_t kCodesAtOnce = 64;
constexpr std::uint32_t kModulesAtOnce = 256;

// In a shortage an event does several.
constexpr std::uint64_t kShortageNs = 50'000;

// A round after which there was no memory again, although all that holds nothing had gone, is
// followed by a rest of its length, within these bounds.
constexpr std::uint64_t kLeastRestNs = 20'000'000;
constexpr std::uint64_t kMostRestNs = 250'000'000;

// A thread that sleeps longer in the middle of an event is not waited for: what there is stays,
// until it goes on. One of many threads on few processors is there after a while. So as long as
// there is space, the round waits longer.
constexpr std::uint64_t kPatienceNs = 250'000'000;
constexpr std::uint64_t kMostPatienceNs = 1'000'000'000;

enum class Step : std::uint8_t {
  none,      // of a round
  waiting,   // for threads that use nodes since an earlier era
  freezing,  // all nodes, because one of them sleeps
  thawing,   // none of them sleeps any more
  thinning,  // samples, because they do not fit
  claiming,  // what is referred to
  retiring,  // what is idle
  labels,    // that no stack has
  frames,    // whose code objects and modules stay
  codes,     // that no frame has
  slots,     // of modules that were unloaded
  modules,   // that no frame has
};

struct Round {
  std::atomic<bool> at_work{false};  // a thread does a step
  std::atomic<Step> step = Step::none;
  std::uint32_t at = 0;  // the next lane, node, …
  // Of Step::retiring, which any number of threads do at a time: what is left, the first nodes.
  std::atomic<std::int64_t> left{0};
  SharedWork retiring;
  std::uint32_t stalled = 0;  // threads that sleep, of those looked at
  std::uint64_t began_ns = 0;
  std::uint64_t waited_ns = 0;                // when it had waited for all threads
  std::uint32_t in_use_until = 0;             // so many nodes it waits for a thread
  std::uint64_t added = 0, added_before = 0;  // nodes so far, when this era and the last one began
  bool must_freeze = false;                   // one of them has fallen asleep since the last round
  bool is_frozen = false;
  bool has_codes = false;             // it looks for code objects, too
  bool has_modules = false;           // likewise
  std::uint32_t shortages = 0;        // when the last one ended
  bool is_full = false;               // there was another shortage before this one began
  bool was_full = false;              // and one before the last one
  bool is_tight = false;              // the last one has left little room
  bool is_crowded = false;            // likewise, although it has taken all that it could
  bool is_young = false;              // what fills the recording are stacks newer than its era
  std::atomic<bool> is_short{false};  // that, or full
  std::uint64_t not_before_ns = 0;    // the next one, if there is a shortage again
  Thinning thinning;
  References references;
  std::uint32_t least = 0;    // nodes, for a round
  std::uint32_t size = 0;     // of their table, when the last one ended
  std::uint32_t earlier = 0;  // than so many nodes the next one begins
};
constinit Round g_round;

void go_on(Step step, std::uint32_t at) noexcept {
  g_round.at = at;
  g_round.step.store(step, std::memory_order_release);
}

bool is_full_again() noexcept { return g_round.is_full && g_round.was_full; }

// A round has just freed all that holds nothing, and memory is short again: the rest is live. If
// most stacks are so new that it could not free them, the next one will.
bool must_thin() noexcept {
  return (is_full_again() || g_round.is_crowded) && !g_round.is_young && !exact();
}

// While a shortage lasts, rounds must not take more than some of the program's time.
bool is_too_early() noexcept {
  return g_round.not_before_ns != 0 && system::coarse_ns() < g_round.not_before_ns;
}

constexpr std::uint64_t kNodeBytes = 16;  // of a node and its share of a holder

// How many more nodes there is space for: in numbers that are free, of them and of the holders that
// they need, and in the recording.
std::uint32_t space_for_nodes(std::uint32_t nodes_in_use) noexcept {
  const std::uint64_t budget = g_state.budget_bytes / 2;
  const std::uint64_t used = g_session.arena.populated_bytes();
  const std::uint64_t left = used < budget ? (budget - used) / kNodeBytes : 0;
  const std::uint64_t free_holders = g_state.holders.free();
  const std::uint64_t holders = g_session.holders.size() - free_holders;
  const std::uint64_t nodes_each = std::max<std::uint64_t>(nodes_in_use / holders, 1);
  const std::uint64_t free =
      std::min<std::uint64_t>(stack::free_nodes(), free_holders * nodes_each);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left + free, NodeStates::kMost));
}

void begin_round(InHook hook) noexcept {
  g_round.was_full = g_round.is_full;
  g_round.is_full = session::g_shortages.load(std::memory_order_relaxed) != g_round.shortages;
  g_round.is_short = g_round.is_tight || g_round.is_full;
  g_round.has_codes = stack::begin_forgetting_codes(g_round.is_short);
  g_round.has_modules = stack::begin_forgetting_modules(hook, g_round.is_short);
  stack::raise_era();
  g_forget_at.store(0, std::memory_order_relaxed);  // each event does a slice
  g_round.began_ns = system::coarse_ns();
  const std::uint32_t in_use = stack::g_nodes_in_use.load(std::memory_order_relaxed);
  g_round.in_use_until = in_use + space_for_nodes(in_use) / 2;
  g_round.stalled = 0;
  g_round.must_freeze = false;
  g_round.added_before = std::exchange(g_round.added, stack::nodes_ever());
  g_state.holders.candidates().drop_empty();
  go_on(Step::waiting, 1);
}

// How many nodes earlier the next round begins, so that a program that needs as many as before does
// not make the tables a little larger each time that a round happens to take longer.
std::uint32_t earlier(std::uint32_t wanted) noexcept {
  const std::uint32_t size = g_session.nodes.size();
  const std::uint32_t more = size - std::exchange(g_round.size, size);
  g_round.earlier = more < wanted / 16 ? std::min(g_round.earlier + 2 * more, wanted / 4) : 0;
  return g_round.earlier;
}

// What is older than the last era is needed. The next round begins when there are half as many new
// nodes as that, or earlier if there is not so much space.
void end_round() noexcept {
  const std::uint32_t left = stack::g_nodes_in_use.load(std::memory_order_relaxed);
  const std::uint64_t young = stack::nodes_ever() - g_round.added_before;
  const auto needed = static_cast<std::uint32_t>(left - std::min<std::uint64_t>(left, young));
  constexpr std::uint32_t kFewest = 256;  // even without free memory
  const std::uint32_t wanted = std::max(g_round.least, needed / 2);
  const std::uint32_t space = space_for_nodes(left);
  const std::uint32_t more = std::min(wanted - earlier(wanted), std::max(space / 3, kFewest));
  g_round.is_crowded = g_round.is_short && space < left / 8;
  g_round.is_tight = space < left / 2;
  g_round.is_young = needed < left / 2 && left > g_state.budget_bytes / 8 / kNodeBytes;
  const bool is_in_vain = must_thin() && !g_round.thinning.has_thinned();
  if (is_in_vain) sample_coarser(g_round.thinning.coarsest());
  if (!g_round.is_short && !g_round.is_tight) sample_finer();
  const std::uint64_t now = system::coarse_ns();
  g_round.not_before_ns =
      is_in_vain ? now + std::clamp(now - g_round.waited_ns, kLeastRestNs, kMostRestNs) : 0;
  g_round.shortages = session::g_shortages.load(std::memory_order_relaxed);
  go_on(Step::none, 0);
  g_forget_at.store(left + more, std::memory_order_relaxed);
}

bool is_patient() noexcept {
  const std::uint64_t waits_ns = system::coarse_ns() - g_round.began_ns;
  if (waits_ns < kPatienceNs) return true;
  return waits_ns < kMostPatienceNs &&
         stack::g_nodes_in_use.load(std::memory_order_relaxed) < g_round.in_use_until;
}

// Whether this thread does not use nodes since before this era, or sleeps.
bool has_left(ThreadState& thread, std::uint32_t era) noexcept {
  switch (stack::use_of(thread.stacks.era, era)) {
    case stack::Use::none_or_now:
      return true;
    case stack::Use::earlier:
      if (is_patient()) return false;
      if (!stack::give_up(thread.stacks.era, era)) return false;
      g_round.must_freeze = true;
      break;
    case stack::Use::stalled:
      break;
  }
  ++g_round.stalled;
  return true;
}

void begin_claiming() noexcept {
  g_round.waited_ns = system::coarse_ns();
  g_round.references.begin();
  g_round.thinning.begin(is_full_again());
  go_on(must_thin() ? Step::thinning : Step::claiming, 0);
}

void wait_for_threads(InHook hook) noexcept {
  const std::uint32_t era = session::g_era.load(std::memory_order_relaxed);
  const std::uint32_t end = std::min(g_round.at + kLanesAtOnce, g_session.lanes.size());
  for (; g_round.at < end; ++g_round.at)
    if (ThreadState* const thread = thread_of_lane(g_round.at); thread && !has_left(*thread, era))
      return;
  if (g_round.at < g_session.lanes.size()) return;
  if (g_round.must_freeze) {
    stack::await_adders(hook);
    return go_on(Step::freezing, 1);
  }
  if (g_round.is_frozen && g_round.stalled == 0) return go_on(Step::thawing, 1);
  begin_claiming();
}

// A thread that sleeps may know any node that there is.
void freeze(bool frozen) noexcept {
  const std::uint32_t nodes = g_session.nodes.size();
  const std::uint32_t end = std::min(g_round.at + kNodesAtOnce, nodes);
  for (; g_round.at < end; ++g_round.at)
    frozen ? g_node_states.set(g_round.at, NodeStates::kFrozen)
           : g_node_states.clear(g_round.at, NodeStates::kFrozen);
  if (g_round.at < nodes) return;
  g_round.is_frozen = frozen;
  begin_claiming();
}

// What the holders of a retired node had allocated, and the row that it goes to.
struct Folded {
  std::uint32_t row = 0;
  live::HolderTable::Forgotten forgotten{};
};
void fold(InHook hook, const Folded& folded) noexcept {
  const std::uint32_t holder = g_state.holders.find_or_add_brief(
      hook, folded.row, folded.forgotten.space, folded.forgotten.api);
  if (holder != 0) g_state.holders.add_totals(hook, holder, folded.forgotten);
}

// A stack that comes again and again keeps its node, unless there is no memory for others. What a
// thread has found before this era it does not use any more.
bool is_idle(NodeStates::Word word, std::uint32_t era) noexcept {
  return g_round.is_short ? NodeStates::is_unused(word, era) : NodeStates::is_idle(word, era);
}

// Retires a leaf, and then its parents as far as they have become leaves without holders. Returns
// how many.
std::uint32_t retire_from(InHook hook, std::uint32_t node, std::uint32_t era) noexcept {
  const NodeStates::Word word = g_node_states.load(node);
  if (!is_idle(word, era)) return 0;
  const live::HolderTable::Has has = g_state.holders.of_node(node);
  if (has == live::HolderTable::Has::needed) return 0;
  const bool has_holders = has == live::HolderTable::Has::empty;
  const NewRow new_row = g_round.is_short ? NewRow::none : NewRow::added;
  const std::uint32_t row = has_holders ? forgotten_node_of(hook, node, new_row) : 0;
  if (has_holders && row == 0) return 0;  // no memory: it stays
  std::uint32_t retired = 0, count = 0;
  Folded folded[kSpaceCount];
  {
    stack::Retiring retiring{hook};
    if (!retiring || !g_node_states.retire(node, word)) return 0;
    if (has_holders) {
      g_state.holders.remove(hook, node, (word & NodeStates::kHasOthers) != 0,
                             [&](const auto& forgotten) {
                               folded[count++] = {row, forgotten};
                             });
      g_session.header().forgotten_stacks.fetch_add(1, std::memory_order_relaxed);
    }
    for (++retired; (node = retiring.use_again(node)) != 0; ++retired) {
      const NodeStates::Word outer = g_node_states.load(node);
      if (!is_idle(outer, era) || g_state.holders.has_any(node) ||
          !g_node_states.retire(node, outer))
        break;
    }
  }
  for (std::uint32_t i = 0; i < count; ++i) fold(hook, folded[i]);
  return retired;
}

// A slice of Step::retiring. Threads that add nodes forget as many, so each does its own.
void retire(InHook hook) noexcept {
  const std::uint32_t era = session::g_era.load(std::memory_order_relaxed);
  std::uint32_t retired = 0;
  for (std::uint32_t seen = 0; seen < kNodesAtOnce && retired < kRetiredAtOnce;) {
    const std::int64_t end = g_round.left.fetch_sub(kNodesOfPart, std::memory_order_relaxed);
    if (end <= 0) return;
    const auto first = static_cast<std::uint32_t>(std::max<std::int64_t>(end - kNodesOfPart, 0));
    for (auto node = static_cast<std::uint32_t>(end); node != first; --node, ++seen)
      if (is_idle(g_node_states.load(node), era)) retired += retire_from(hook, node, era);
  }
}

// The step ends when nothing is left, and no thread is in the middle of a part.
void join_retiring(InHook hook) noexcept {
  if (!g_round.retiring.enter()) return;
  retire(hook);
  g_round.retiring.leave();
}
void maybe_end_retiring() noexcept {
  if (g_round.left.load(std::memory_order_relaxed) > 0 || !g_round.retiring.close()) return;
  g_round.is_frozen ? end_round() : go_on(Step::labels, 1);
}

// What frames have, a part at each call: code objects and modules.
void read_frames() noexcept {
  const std::uint32_t round = session::g_era;
  const std::uint32_t frames = g_session.frames.size();
  const std::uint32_t end = std::min(g_round.at + kNodesAtOnce, frames);
  if (g_round.has_codes) stack::claim_codes(g_round.at, end, round);
  if (g_round.has_modules) stack::claim_modules(g_round.at, end, round);
  if (end != frames) return go_on(Step::frames, end);
  if (g_round.has_modules) stack::claim_modules(g_session.header().crash.frames, round);
  go_on(g_round.has_codes ? Step::codes : Step::slots, 1);
}

void do_slice(InHook hook) noexcept {
  if (g_round.step.load(std::memory_order_acquire) == Step::retiring) join_retiring(hook);
  if (g_round.at_work.exchange(true, std::memory_order_acquire)) return;
  switch (g_round.step.load(std::memory_order_relaxed)) {
    case Step::none:
      if (stack::g_nodes_in_use >= g_forget_at && !is_too_early()) begin_round(hook);
      break;
    case Step::waiting:
      wait_for_threads(hook);
      break;
    case Step::freezing:
      freeze(true);
      break;
    case Step::thawing:
      freeze(false);
      break;
    case Step::thinning:
      if (g_round.thinning.next(hook)) go_on(Step::claiming, 0);
      break;
    case Step::claiming:
      if (!g_round.references.claim_next(hook)) break;
      g_round.left.store(g_session.nodes.size() - 1, std::memory_order_relaxed);
      g_round.retiring.open();
      go_on(Step::retiring, 0);
      break;
    case Step::retiring:
      maybe_end_retiring();
      break;
    case Step::labels:
      if (!forget_idle_labels(hook, g_round.at, kLabelsAtOnce)) break;
      g_round.has_codes || g_round.has_modules ? go_on(Step::frames, 1) : end_round();
      break;
    case Step::frames:
      read_frames();
      break;
    case Step::codes:
      if (!stack::forget_codes(hook, g_round.at, kCodesAtOnce, session::g_era)) break;
      g_round.has_modules ? go_on(Step::slots, 1) : end_round();
      break;
    case Step::slots:
      if (stack::forget_module_slots(hook, g_round.at, kModulesAtOnce, session::g_era))
        go_on(Step::modules, 1);
      break;
    case Step::modules:
      if (stack::forget_module_entries(hook, g_round.at, kModulesAtOnce, session::g_era))
        end_round();
      break;
  }
  g_round.at_work.store(false, std::memory_order_release);
}

}  // namespace

void start_forgetting(std::uint64_t budget_bytes, std::uint32_t least_nodes) noexcept {
  const auto share = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(budget_bytes / 1024, 2 * 1024, 32 * 1024));
  const std::uint32_t least = least_nodes != 0 ? least_nodes : share;
  g_round.least = least;
  g_forget_at.store(least, std::memory_order_relaxed);
}

void forget(InHook hook) noexcept {
  if (phase() != Phase::active || helper::is_writing(g_state.pid)) return;  // it reads all stacks
  do_slice(hook);
  if (!g_round.is_short) return;
  const std::uint64_t began_ns = system::monotonic_ns();
  while (g_round.step.load(std::memory_order_relaxed) != Step::none &&
         system::monotonic_ns() - began_ns < kShortageNs)
    do_slice(hook);
}

void reset_forgetting_after_fork(InHook hook) noexcept {
  g_round.at_work.store(false, std::memory_order_relaxed);
  g_round.retiring.reset();
  go_on(Step::none, 0);
  g_round.is_frozen = false;
  g_round.is_tight = g_round.is_crowded = g_round.is_young = false;
  g_round.is_full = g_round.was_full = false;
  g_round.is_short = false;
  g_round.not_before_ns = 0;
  g_round.size = g_round.earlier = 0;
  reset_forgotten_rows_after_fork(hook);
}

}  // namespace oomrec::recorder
