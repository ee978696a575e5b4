// Event processing in exact mode: totals, holders, peak, ring.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <deque>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/unit/recorder/running.h"

#include "recorder/events/heap.h"
#include "recorder/events/in_flight.h"
#include "recorder/events/mappings.h"
#include "recorder/process/ended_processes.h"
#include "recorder/recorder.h"
#include "recorder/state/labels.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;
using session::g_session;

namespace {

std::deque<session::Event> events_since(std::uint64_t first) {
  const session::View view = g_session.view();
  std::deque<session::Event> events;
  session::Lane lane;
  for (std::uint64_t i = 1; i < view.count(session::TableId::lanes); ++i) {
    view.read(session::TableId::lanes, i, lane);
    if (lane.thread != recorder::t_thread->thread) continue;
    for (std::uint64_t number = first; number < lane.ring_next; ++number) {
      session::Event& event = events.emplace_back();
      if (!view.event(lane, number, event) || event.is_stamp()) events.pop_back();
    }
  }
  return events;
}

}  // namespace

TEST_CASE("random events: totals are exact in usable bytes, holders agree with the live blocks") {
  need(Mode::exact);
  std::mt19937_64 random(7);
  std::unordered_map<std::uint64_t, std::uint64_t> live;
  std::uint64_t live_usable = 0, allocated = 0, count = 0;
  for (int round = 0; round < 60'000; ++round) {
    const std::uint64_t address = 0x1000'0000 + random() % 4000 * 64;
    const auto known = live.find(address);
    if (known == live.end()) {
      t_stack = static_cast<std::uint32_t>(1 + random() % 50);
      const std::uint64_t bytes = random() % 9 == 0 ? random() % 200'000 : random() % 300;
      allocate(address, bytes);
      live[address] = bytes;
      live_usable += usable(bytes);
      allocated += usable(bytes);
      ++count;
    } else if (random() % 8 == 0) {  // a failing realloc
      recorder::restore(kHook, Space::heap, release(address, known->second));
    } else {
      CHECK(release(address, known->second).bytes == usable(known->second));
      live_usable -= usable(known->second);
      live.erase(known);
    }
  }
  const auto seen = totals(Space::heap);
  CHECK(seen.live_bytes == static_cast<std::int64_t>(live_usable));
  CHECK(seen.live_count == static_cast<std::int64_t>(live.size()));
  CHECK(seen.allocated_bytes == allocated);
  CHECK(seen.allocated_count == count);
  CHECK(holders_agree());
  CHECK(g_session.header().dropped_events == 0);
  for (const auto& [address, bytes] : live) release(address, bytes);
  CHECK(totals(Space::heap).live_bytes == 0);
  CHECK(holders_agree());
}

TEST_CASE("a holder counts what alignment keeps free, and loses just that again") {
  need(Mode::exact);
  t_stack = 901;
  constexpr std::uint64_t kAddress = 0x3100'0000'0000, kBlocks = 1000, kUsable = 104, kGap = 3984;
  const auto before = totals(Space::heap);
  const auto held = [] { return holder_of(901, Space::heap)->live_bytes.load(); };
  const auto take_back = [](std::uint64_t block) {
    return recorder::on_free(kHook, Space::heap, Api::free, kAddress + block * 4096, kUsable);
  };
  for (std::uint64_t i = 0; i < kBlocks; ++i)
    recorder::on_allocate(
        kHook, {Space::heap, Api::aligned_alloc, kAddress + i * 4096, 100, kUsable, 0, kGap});
  CHECK(held() == kBlocks * (kUsable + kGap));
  CHECK(totals(Space::heap).live_bytes ==
        before.live_bytes + static_cast<std::int64_t>(kBlocks * kUsable));
  CHECK(holders_agree());
  recorder::restore(kHook, Space::heap, take_back(0));  // of a realloc that fails
  CHECK(held() == kBlocks * (kUsable + kGap));
  CHECK(holders_agree());
  for (std::uint64_t i = 0; i < kBlocks; ++i) take_back(i);
  CHECK(held() == 0);
  CHECK(totals(Space::heap).live_bytes == before.live_bytes);
}

TEST_CASE("blocks cross threads, and a dead thread's lane still counts") {
  need(Mode::exact);
  const auto before = totals(Space::heap);
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 4; ++id) {
    threads.emplace_back([id] {
      t_stack = static_cast<std::uint32_t>(100 + id);
      for (std::uint64_t i = 0; i < 5'000; ++i) allocate(0x2000'0000 + (id * 5'000 + i) * 64, 211);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint32_t lanes = g_session.lanes.size();
  std::thread([] {
    for (std::uint64_t i = 0; i < 20'000; ++i) release(0x2000'0000 + i * 64, 211);
  }).join();
  const auto after = totals(Space::heap);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.allocated_count - before.allocated_count == 20'000);
  CHECK(holders_agree());
  CHECK(g_session.lanes.size() == lanes);  // reused
}

TEST_CASE("the peak's snapshot has the block that made the peak, and outlives it") {
  need(Mode::exact);
  t_stack = 201;
  allocate(0x3000'0000, 30 * kMiB);
  t_stack = 202;
  allocate(0x3800'0000, 50 * kMiB);
  const auto& heap = g_session.header().spaces[static_cast<std::size_t>(Space::heap)];
  const std::uint32_t epoch = heap.peak_epoch;
  CHECK(heap.peak_bytes >= 80 * kMiB);

  release(0x3800'0000, 50 * kMiB);
  const session::Holder& second = raw_holder_of(202, Space::heap);
  CHECK(second.live_bytes == 0);
  CHECK(second.peak_epoch == epoch);
  CHECK(second.peak_bytes == usable(50 * kMiB));
  CHECK(second.peak_count == 1);

  const session::Holder& first =
      raw_holder_of(201, Space::heap);  // unchanged since: its live bytes are its peak
  CHECK(first.peak_epoch != epoch);
  CHECK(first.live_bytes == usable(30 * kMiB));

  t_stack = 203;  // below the peak: no step, and the new holder had nothing at the peak
  allocate(0x3c00'0000, kMiB);
  CHECK(heap.peak_epoch == epoch);
  CHECK(holder_of(203, Space::heap)->peak_epoch == epoch);
  CHECK(holder_of(203, Space::heap)->peak_bytes == 0);
  release(0x3c00'0000, kMiB);

  t_stack = 202;  // up to 1 % above: no step; more: one step
  allocate(0x3800'0000, 50 * kMiB + kMiB / 2);
  CHECK(heap.peak_epoch == epoch);
  allocate(0x3c00'0000, 2 * kMiB);
  CHECK(heap.peak_epoch == epoch + 1);
  release(0x3c00'0000, 2 * kMiB);
  CHECK(second.peak_bytes == usable(50 * kMiB + kMiB / 2) + usable(2 * kMiB));
  release(0x3800'0000, 50 * kMiB + kMiB / 2);
  release(0x3000'0000, 30 * kMiB);
  CHECK(holders_agree());
}

TEST_CASE("mappings count if writable and anonymous, reservations once they are made writable") {
  need(Mode::exact);
  t_stack = 301;
  const auto at = [] { return totals(Space::map).live_bytes; };
  const std::int64_t before = at();
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
  const recorder::Mapping reservation{Api::mmap, 0x7100'0000'0000, 64 * kMiB,
                                      PROT_NONE, kPrivate,         false};
  CHECK(recorder::counted_bytes(kHook, reservation) == 0);
  recorder::on_map(kHook, reservation);
  recorder::on_map(kHook,
                   {Api::mmap, 0x7200'0000'0000, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE, true});
  recorder::on_map(kHook, {Api::mmap, 0x7300'0000'0000, 1024 * kMiB, PROT_READ | PROT_WRITE,
                           kPrivate | MAP_NORESERVE, false});
  recorder::on_map(kHook, {Api::mmap, 0x7400'0000'0000, kMiB, PROT_READ | PROT_WRITE,
                           kPrivate | MAP_STACK, false});
  CHECK(at() == before);
  const auto& reserved =
      g_session.header().spaces[static_cast<std::size_t>(Space::map)].reserved_bytes;
  CHECK(reserved == 1088 * kMiB);

  CHECK(recorder::counted_by_protect(kHook, 0x7100'0000'0000, 8 * kMiB, PROT_READ | PROT_WRITE) ==
        8 * kMiB);
  recorder::on_protect(kHook, 0x7100'0000'0000, 8 * kMiB, PROT_READ | PROT_WRITE);
  CHECK(at() == before + static_cast<std::int64_t>(8 * kMiB));
  CHECK(reserved == 1080 * kMiB);
  CHECK(recorder::counted_by_protect(kHook, 0x7100'0000'0000, 8 * kMiB, PROT_READ | PROT_WRITE) ==
        0);

  const recorder::Mapping over{Api::mmap,
                               0x7100'0000'0000 + 4 * kMiB,
                               8 * kMiB,
                               PROT_READ | PROT_WRITE,
                               kPrivate | MAP_FIXED,
                               false};
  CHECK(recorder::counted_bytes(kHook, over) == 4 * kMiB);
  recorder::on_map(kHook, over);
  CHECK(at() == before + static_cast<std::int64_t>(12 * kMiB));
  CHECK(recorder::counted_by_remap(kHook, over.address, 8 * kMiB) == 8 * kMiB);
  CHECK(recorder::counted_by_remap(kHook, 0x7200'0000'0000, 8 * kMiB) == 0);
  recorder::on_remap(kHook, over.address, over.bytes, 0x7500'0000'0000, 16 * kMiB);
  CHECK(at() == before + static_cast<std::int64_t>(20 * kMiB));
  recorder::on_unmap(kHook, Api::munmap, 0x7500'0000'0000 + kMiB, 2 * kMiB);
  CHECK(at() == before + static_cast<std::int64_t>(18 * kMiB));
  CHECK(totals(Space::map).live_count == 6);  // a usable reservation, a private file, a stack, too
  CHECK(holders_agree());

  recorder::on_break(kHook, Api::sbrk, 0x10'0000'0123, 0x10'0000'0123 + kMiB);
  recorder::on_break(kHook, Api::sbrk, 0x10'0000'0123 + kMiB, 0x10'0000'0123 + 3 * kMiB);
  recorder::on_break(kHook, Api::sbrk, 0x10'0000'0123 + 3 * kMiB, 0x10'0000'0123 + 2 * kMiB);
  CHECK(at() == before + static_cast<std::int64_t>(20 * kMiB));
  CHECK(totals(Space::map).live_count == 7);
  CHECK(holders_agree());
}

TEST_CASE("a request is in flight until what came of it is recorded, with the old block") {
  need(Mode::exact);
  t_stack = 321;
  struct Request {
    std::uint64_t bytes, replaced_bytes;
    std::uint32_t replaced_holder;
  };
  const auto in_flight = [] {
    std::vector<Request> found;
    g_session.view().for_each_in_flight([&](const session::InFlight& one, std::uint32_t) {
      found.push_back({one.bytes, one.replaced_bytes, one.replaced_holder});
    });
    return found;
  };
  constexpr std::uint64_t kOld = 0x3100'0000, kOldBytes = 4 * kMiB;
  allocate(kOld, kOldBytes);
  for (const bool fails : {true, false}) {
    const recorder::Request request{Space::heap, Api::realloc, 8 * kMiB};
    const recorder::InFlight entry{kHook, request, request.bytes};
    const recorder::Released released =
        recorder::on_free(kHook, Space::heap, Api::realloc, kOld, usable(kOldBytes));
    REQUIRE(in_flight().size() == 1);
    CHECK(in_flight().front().bytes == request.bytes);
    CHECK(in_flight().front().replaced_bytes == released.bytes);
    CHECK(released.bytes >= kOldBytes);
    CHECK(in_flight().front().replaced_holder == released.holder);
    if (fails)
      recorder::restore(kHook, Space::heap, released);
    else
      allocate(0x3200'0000, request.bytes);
    CHECK(in_flight().empty());  // counting it may take a sample, which may be the end
  }
  {
    const recorder::Request request{Space::map, Api::mmap, 2 * kMiB};
    const recorder::InFlight entry{kHook, request, request.bytes};
    CHECK(in_flight().size() == 1);
    recorder::on_map(kHook, {Api::mmap, 0x7600'0000'0000, request.bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, false});
    CHECK(in_flight().empty());
    recorder::on_unmap(kHook, Api::munmap, 0x7600'0000'0000, request.bytes);
  }
  release(0x3200'0000, 8 * kMiB);
}

TEST_CASE("every event is in the ring, in order, with its stack") {
  need(Mode::exact);
  allocate(0x4000'0000, 1);
  const std::uint64_t first = recorder::t_thread->lane->ring_next;
  t_stack = 401;
  allocate(0x4000'0040, 123);
  release(0x4000'0040, 123);
  release(0x4000'0000, 1);
  recorder::on_child_status(kHook, 4711, 9);
  const auto events = events_since(first);
  REQUIRE(events.size() == 4);
  CHECK(events[0].kind == EventKind::allocate);
  CHECK(events[0].bytes == 123);
  CHECK(session::offset_of(g_session.node(events[0].stack).frame) == 401);
  CHECK(events[1].kind == EventKind::free);
  CHECK(events[1].bytes == usable(123));
  CHECK(events[1].address == 0x4000'0040);
  CHECK(events[3].address == 4711);
  CHECK(events[3].bytes == 9);
}

TEST_CASE("a context stands between the thread's group and the frames") {
  need(Mode::exact);
  t_stack = 501;
  recorder::push_context(kHook, "step");
  recorder::push_context(kHook, "forward");
  allocate(0x5000'0000, 77);
  std::vector<std::uint64_t> frames;
  g_session.view().walk(holder_of(501, Space::heap)->node,
                        [&](std::uint64_t frame) { frames.push_back(frame); });
  REQUIRE(frames.size() == 4);
  CHECK(g_session.view().string(session::argument_of(frames[1])) == "forward");
  CHECK(g_session.view().string(session::argument_of(frames[2])) == "step");
  CHECK(session::special_of(frames[3]) == session::SpecialFrame::thread_group);
  CHECK(g_session.view().string(session::argument_of(frames[3])) == "main");
  for (int i = 0; i < 40; ++i) recorder::push_context(kHook, "deep");
  for (int i = 0; i < 42; ++i) recorder::pop_context(kHook);
  recorder::pop_context(kHook);
  CHECK(recorder::t_thread->context_depth == 0);
  release(0x5000'0000, 77);
}

TEST_CASE("a signal handler inside the recorder only counts") {
  need(Mode::exact);
  const auto before = totals(Space::heap);
  recorder::count_allocate(Space::heap, 100, 120);
  recorder::count_free(Space::heap, 120);
  recorder::count_allocate(Space::heap, 50, 60);
  const auto after = totals(Space::heap);
  CHECK(after.live_bytes - before.live_bytes == 60);
  CHECK(after.allocated_bytes - before.allocated_bytes == 180);
  CHECK(after.live_count - before.live_count == 1);
}

TEST_CASE("exact mode falls back to sampled when its budget is used up, and records it") {
  const int pid = fork();  // a separate process, with a small budget from the start
  if (pid == 0) {
    recorder::g_state.options.recording_size = 3 * kMiB;
    recorder::on_fork_child(kHook);
    t_stack = 601;
    for (std::uint64_t i = 0; i < 400'000; ++i) allocate(0x6000'0000 + i * 64, 100);
    const bool said = g_session.header().mode_now == static_cast<std::uint32_t>(Mode::sampled) &&
                      g_session.header().mode == static_cast<std::uint8_t>(Mode::exact);
    const auto seen = totals(Space::heap);
    g_session.remove_file(kHook);
    _exit(said && seen.live_bytes >= 400'000 * 112 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK(status == 0);
}
