// Stacks that nothing needs any more are forgotten, and all others stay.
#include "recorder/forget/forget.h"

#include <chrono>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "recorder/events/marks.h"
#include "recorder/stack/intern.h"
#include "recorder/state/labels.h"
#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/forget/churn.h"

using namespace oomrec;
using namespace oomrec::running;
using session::g_node_states;
using session::g_session;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

// Most in the side table, the others in `live_blocks`, with full holders.
std::uint64_t mixed_bytes(std::uint32_t place) {
  return place % 8 == 0 ? 40'000 + place * 8 : 100 + place;
}
std::uint64_t small_bytes(std::uint32_t place) { return 100 + place; }

// The node of the calling thread's present stack.
std::uint32_t present_node() {
  recorder::ThreadState* const thread = recorder::current_thread(kHook);
  REQUIRE(thread != nullptr);
  stack::UsesNodes uses;
  uses.begin(thread->stacks.era);
  const std::uint32_t node = stack::capture(kHook, thread->stacks, thread->root(kHook));
  uses.end();
  return node;
}

// How many of the calling thread's sums are not those of their node's holder.
std::uint32_t stale_sums() {
  std::uint32_t lane = 1;
  while (&g_session.lanes.at(lane) != recorder::t_thread->lane) ++lane;
  const session::HolderSum* const sums = g_session.sums(lane);
  REQUIRE(sums != nullptr);
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < recorder::t_thread->lane->sums; ++i) {
    const std::uint32_t holder = sums[i].holder;
    count += holder != 0 && g_session.holders.at(holder).node != sums[i].node;
  }
  return count;
}

bool is_still(std::uint32_t node, std::uint32_t stack) {
  return g_node_states.load(node) != 0 && stack_of(node) == stack &&
         !recorder::is_forgotten_row(node);
}

}  // namespace

TEST_CASE("a simulated month: the recording does not grow, and every live block has its stack") {
  need_to_forget(Mode::exact);
  check_simulated_month(scaled(1'500'000), mixed_bytes);
  CHECK(holders_agree());
}

TEST_CASE("a stack with a live block is never forgotten") {
  need_to_forget(Mode::exact);
  check_old_blocks_stay(scaled(300'000), small_bytes);
  CHECK(holders_agree());
}

TEST_CASE("an old block is freed in the middle of a round: its stack is not used again too early") {
  need_to_forget(Mode::exact);
  {
    Churn old{0x1900'0000, 1000, small_bytes}, churn{0x1a00'0000, 100, small_bytes};
    old.replace_each();
    std::uint32_t wrong = 0;
    for (unsigned i = 0; i < scaled(40'000); ++i) {
      churn.replace(8);
      old.replace(1);
      // Now only the thread's sum has the stack of the block that it replaced.
      recorder::t_thread->sums.flush(kHook, recorder::g_state.holders);
      churn.replace(8);
      if (i % 4 == 0) wrong += stale_sums();
    }
    CHECK(wrong == 0);
    CHECK(old.is_recorded());
    CHECK(churn.is_recorded());
    CHECK(holders_agree());
  }
  const EverAllocated ever = ever_allocated();
  CHECK(ever.count == totals(Space::heap).allocated_count);
  CHECK(ever.bytes == totals(Space::heap).allocated_bytes);
}

TEST_CASE("the stacks of the peak stay, with their figures, until there is a higher one") {
  need_to_forget(Mode::exact);
  constexpr std::uint32_t kStacks = 1200;
  constexpr std::uint64_t kFirst = 0x2000'0000, kLast = 0x10'0000'0000;
  // First large ones, so that the small ones are no candidates for a checkpoint: brief holders.
  const auto bytes_of = [](std::uint32_t i) { return i < kStacks / 2 ? kMiB + i : 200 + i; };
  std::map<std::uint32_t, std::uint64_t> peak;  // bytes of each stack
  for (std::uint32_t i = 0; i < kStacks; ++i) {
    peak[new_stack()] = usable(bytes_of(i));
    allocate(kFirst + i * 4 * kMiB, bytes_of(i));
  }
  peak[new_stack()] = usable(64 * kMiB);  // a peak step, with all the others
  allocate(kLast - 128 * kMiB, 64 * kMiB);
  const auto& heap = g_session.header().spaces[static_cast<std::size_t>(Space::heap)];
  const std::uint32_t epoch = heap.peak_epoch;
  for (std::uint32_t i = 0; i < kStacks; ++i) release(kFirst + i * 4 * kMiB, bytes_of(i));
  release(kLast - 128 * kMiB, 64 * kMiB);

  Churn churn{0x1500'0000, 100, small_bytes};
  const auto left = [&] {  // of the peak's
    std::uint32_t count = 0;
    for (std::uint32_t i = 1; i < g_session.holders.size(); ++i) {
      session::Holder holder;
      REQUIRE(g_session.view().holder(i, holder));
      if (holder.node == 0 || recorder::is_forgotten_row(holder.node)) continue;
      const auto found = peak.find(stack_of(holder.node));
      if (found == peak.end()) continue;
      ++count;
      if (heap.peak_epoch != epoch) continue;
      CHECK(holder.peak_bytes == found->second);
      CHECK(holder.peak_count == 1);
      CHECK(holder.live_bytes == 0);
      CHECK(holder.total_count == 1);
    }
    return count;
  };
  const std::uint64_t before = forgotten_stacks();
  churn.replace(scaled(300'000));
  REQUIRE(heap.peak_epoch == epoch);
  CHECK(forgotten_stacks() - before > scaled(150'000));
  CHECK(left() == peak.size());

  new_stack();
  allocate(kLast, 1024 * kMiB);
  REQUIRE(heap.peak_epoch != epoch);
  churn.replace(scaled(300'000));
  CHECK(left() < 20);  // but for the largest that the latest checkpoints have
  release(kLast, 1024 * kMiB);
  CHECK(holders_agree());
}

TEST_CASE("ever new labels: the latest are right, and the recording does not grow") {
  need_to_forget(Mode::exact);
  constexpr std::uint32_t kLabels = scaled(60'000), kBlocks = 20;
  constexpr std::uint64_t kFirst = 0x1800'0000;
  const auto text_of = [](std::uint32_t number) {
    return "request " + std::string(5 - std::to_string(number).size(), '0') +
           std::to_string(number);
  };
  Sizes at_half{};
  for (std::uint32_t i = 0; i < kLabels; ++i) {
    if (i == kLabels / 2) at_half = sizes();
    const std::uint64_t address = kFirst + i % kBlocks * 256;
    recorder::push_context(kHook, text_of(i));
    if (i >= kBlocks) release(address, 100);
    new_stack();
    allocate(address, 100);
    recorder::pop_context(kHook);
  }
  INFO("then " << toString(at_half) << ", now " << toString(sizes()));
  CHECK(at_half.is_constant(sizes()));
  const auto nodes = recorded_nodes();
  for (std::uint32_t i = kLabels - kBlocks; i < kLabels; ++i) {
    const std::uint64_t address = kFirst + i % kBlocks * 256;
    REQUIRE(nodes.contains(address));
    CHECK(recorder::label_of(nodes.at(address)) == text_of(i));
    release(address, 100);
  }
  CHECK(g_session.header().dropped_events == 0);
  CHECK(holders_agree());
}

TEST_CASE("ever new marks: the latest, the first, and between them fewer and fewer") {
  need_to_forget(Mode::exact);
  constexpr std::uint32_t kCount = 10'000, kLatest = session::kMarks / 2;
  for (std::uint32_t i = 0; i < kCount; ++i) recorder::mark(kHook, "mark " + std::to_string(i));
  const session::View view = g_session.view();
  std::map<std::uint32_t, std::uint64_t> marks;  // times, by number
  REQUIRE(view.count(session::TableId::marks) == 1 + session::kMarks);
  for (std::uint32_t i = 1; i <= session::kMarks; ++i) {
    session::Mark mark;
    REQUIRE(view.read(session::TableId::marks, i, mark));
    const std::string text{view.string(mark.text)};
    REQUIRE(text.starts_with("mark "));
    CHECK(mark.thread == recorder::t_thread->thread);
    marks[static_cast<std::uint32_t>(std::stoul(text.substr(5)))] = mark.time_ns;
  }
  REQUIRE(marks.size() == session::kMarks);
  CHECK(marks.begin()->first == 0);
  CHECK(marks.rbegin()->first == kCount - 1);

  // 2,048 of 7,952: every fourth, and of the latest of these every second.
  std::set<std::uint32_t> distances;
  std::uint32_t latest = 0, last = 0;
  std::uint64_t time_ns = 0;
  for (const auto& [number, at] : marks) {
    CHECK(at >= time_ns);
    time_ns = at;
    latest += number >= kCount - kLatest;
    if (number != 0 && number < kCount - kLatest) distances.insert(number - last);
    last = number;
  }
  CHECK(latest == kLatest);
  CHECK(distances == std::set<std::uint32_t>{2, 4});
  for (std::uint32_t number = 0; number < kCount - kLatest; number += 4)
    CHECK(marks.contains(number));
  CHECK(g_session.header().dropped_marks == kCount - session::kMarks);
}

// The last one: how much it freezes depends on the machine, and may fill the recording.
TEST_CASE("a thread that sleeps in an event keeps what there was, and nothing newer") {
  need_to_forget(Mode::exact);
  Churn churn{0x1600'0000, 100, small_bytes};
  std::map<std::uint32_t, std::uint32_t> known;  // stacks without blocks, by node
  std::latch asleep{1}, awake{1};
  std::thread sleeper{[&] {
    new_stack();
    allocate(0x1700'0000, 100);
    release(0x1700'0000, 100);
    stack::UsesNodes uses;
    uses.begin(recorder::current_thread(kHook)->stacks.era);
    asleep.count_down();
    awake.wait();
    uses.end();
  }};
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t stack = new_stack();
    allocate(0x1700'1000, 100);
    known[present_node()] = stack;
    release(0x1700'1000, 100);
  }
  asleep.wait();
  const auto left = [&] {
    std::size_t count = 0;
    for (const auto& [node, stack] : known) count += is_still(node, stack);
    return count;
  };
  // No round goes on until the thread has slept for a second.
  const std::uint64_t before = forgotten_stacks();
  const auto end = steady_clock::now() + 120s;
  while (forgotten_stacks() - before < scaled(100'000) && steady_clock::now() < end) {
    churn.replace(1000);
    if (forgotten_stacks() == before) std::this_thread::sleep_for(20ms);
  }
  CHECK(forgotten_stacks() - before >= scaled(100'000));
  CHECK(left() == known.size());
  // Rounds are longer the more nodes were frozen, which depends on the machine.
  for (int i = 0; i < 10 && forgotten_stacks() - before <= scaled(300'000); ++i)
    churn.replace(scaled(500'000));
  CHECK(forgotten_stacks() - before > scaled(300'000));
  CHECK(left() == known.size());

  awake.count_down();
  sleeper.join();
  for (int i = 0; i < 10 && left() != 0; ++i) churn.replace(scaled(300'000));
  CHECK(left() == 0);
  CHECK(churn.is_recorded());
  CHECK(holders_agree());
}
