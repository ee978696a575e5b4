// A session by its writer and its reader: tables, strings, lanes, facts.
#include "recorder/session/writer.h"
#include "common/machine/page.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/session/brief_holder.h"
#include "tests/unit/recorder/session/fixtures.h"
#include "tests/unit/sanitized.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

u64 count_wrong_nodes(const View& view, u32 last) {
  u64 wrong = 0;
  Node node{};
  for (u32 index = 1; index <= last; ++index) {
    wrong += !view.read(TableId::nodes, index, node) || node.frame != index * u64{7};
  }
  return wrong;
}

void append_nodes(Session& session, u32 last) {
  u32 index = 0;
  for (u32 number = session.nodes.size(); number <= last; ++number) {
    REQUIRE(tests::append_node(session, index, 0, number * u64{7}));
    REQUIRE(index == number);
  }
}

}  // namespace

TEST_CASE("appended entries are read back, also from the file") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  append_nodes(*session, 300'000);

  CHECK(session->view().count(TableId::nodes) == 300'001);
  CHECK(count_wrong_nodes(session->view(), 300'000) == 0);
  CHECK(count_wrong_nodes(Recording{session->path()}.view(), 300'000) == 0);
  Node node{};
  CHECK_FALSE(session->view().read(TableId::nodes, 300'001, node));
}

TEST_CASE("a session grows piece by piece, in its file and in private memory") {
  const Scratch scratch;
  Settings settings;
  settings.mode = Mode::exact;
  const auto session = session_in(scratch.path(), settings);
  constexpr u64 kSegments = kSanitized ? 1 : 3;
  constexpr u64 kNodes = kSegments * 1'170'000;
  append_nodes(*session, kNodes);

  CHECK(session->arena.used_bytes() > kSegments * kSegmentBytes);
  CHECK(count_wrong_nodes(Recording{session->path()}.view(), kNodes) == 0);

  // Each mapping of the file begins at the arena's offset.
  std::ifstream maps{"/proc/self/maps"};
  u64 bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(session->path()) == std::string::npos) continue;
    u64 start = 0, end = 0, offset = 0;
    REQUIRE(std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &start, &end, &offset) == 3);
    bytes += end - start;
    for (; start < end; start += machine::page_bytes(), offset += machine::page_bytes()) {
      if (reinterpret_cast<u64>(session->arena.at(offset)) != start) FAIL_CHECK(offset);
    }
  }
  // Whole pieces: those in use, and 4 MiB ahead.
  const u64 needed = session->arena.used_bytes() + kLargestChunkBytes;
  CHECK(bytes == piece_start(piece_of(needed - 1) + 1));
}

TEST_CASE("a full table rejects entries, others continue within the budget") {
  const Scratch scratch;
  Settings settings;
  settings.budget_bytes = 1 << 20;
  const auto session = session_in(scratch.path(), settings);
  u32 index = 0;
  u64 appended = 0;
  while (session->full_holders.append(kHook, index, [](Holder&) {})) ++appended;

  CHECK(appended > 5'000);
  CHECK(session->arena.populated_bytes() <= 1 << 20);
  CHECK(session->view().count(TableId::full_holders) == appended + 1);
  CHECK_FALSE(session->full_holders.append(kHook, index, [](Holder&) {}));
}

TEST_CASE("the part reserved from exact mode is available when the rest is used up") {
  const Scratch scratch;
  Settings settings;
  settings.mode = Mode::exact;
  settings.budget_bytes = 8 << 20;
  const auto session = session_in(scratch.path(), settings);
  u32 index = 0;
  const auto append = [&] { return tests::append_node(*session, index, 0, 0); };
  while (append()) {
  }

  CHECK(session->arena.is_short());
  CHECK(session->arena.populated_bytes() <= 7 << 20);
  CHECK(session->arena.populated_bytes() > 6 << 20);
  session->arena.release_reserve();
  CHECK_FALSE(session->arena.is_short());
  CHECK(append());  // immediately, not only at the next of its rare retries
  while (append()) {
  }
  CHECK(session->arena.populated_bytes() > 7 << 20);
  CHECK_FALSE(session->arena.is_short());  // nothing is left
}

TEST_CASE("a session describes its process") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  const View view = session->view();

  CHECK(view.header().pid == getpid());
  CHECK(view.header().start_ticks != 0);
  CHECK(std::string{view.header().oomrec_version} == OOMREC_VERSION);
  CHECK(view.string(view.header().executable).find("session_writer_test") !=
        std::string_view::npos);
  CHECK(view.string(view.header().command_line).find("session_writer_test") !=
        std::string_view::npos);
  CHECK(view.string(view.header().working_directory).substr(0, 1) == "/");
  CHECK(view.header().ram_bytes > 1'000'000);
  CHECK(life_of(view) == Life::alive);

  struct stat facts;
  REQUIRE(stat(session->path(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(facts.st_size == 32 << 20);
  CHECK(facts.st_blocks * 512 < 256 * 1024);
  CHECK(session->arena.populated_bytes() < 128 * 1024);
  session->remove_file(kHook);
  CHECK(files_in(scratch.own()).empty());
  append_nodes(*session, 100);  // mapped segments stay
}

TEST_CASE("no event is older than the session") {
  const Scratch scratch;
  for (int i = 0; i < 20; ++i) {
    const auto start_ns = session_in(scratch.path())->view().header().start_monotonic_ns;
    CHECK(start_ns <= system::coarse_ns());
  }
}

TEST_CASE("strings of any length are kept, complete or cut at the bound") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  std::vector<std::pair<StringId, std::string>> added;
  u32 seed = 1;
  for (const std::size_t bytes :
       {1u, 2u, 3u, 4u, 5u, 4095u, 101u, 65'536u, 70'000u, 7u, 8192u, 30'000u}) {
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(seed = seed * 1'103'515'245 + 12'345);
    const StringId id = session->add_string(kHook, text);
    REQUIRE(id != 0);
    CHECK(id % 4 == 0);
    added.emplace_back(id, text.substr(0, kMaxStringBytes));
  }
  const Recording recording{session->path()};
  for (const auto& [id, text] : added) CHECK(recording.view().string(id) == text);
  CHECK(session->add_string(kHook, "") == 0);
}

namespace {

// Returns the thread's id when it has ended for the kernel, too: join() returns a moment earlier.
template <class Function>
i32 run_in_thread(Function function) {
  i32 id = 0;
  std::thread{[&] {
    id = gettid();
    function();
  }}.join();
  while (tgkill(getpid(), id, 0) == 0) std::this_thread::yield();
  return id;
}

}  // namespace

TEST_CASE("short-lived threads reuse lanes while others keep theirs") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  std::uint32_t staying = 0;
  std::uint32_t most = 0;
  SUBCASE("few threads: the free lane is found") {
    staying = 5;
    most = 8;  // they come in ones, twos and fours
  }
  SUBCASE("many threads: a free lane is found soon") {
    staying = 20;
    most = 4 * staying;
  }
  for (std::uint32_t i = 0; i < staying; ++i) session->acquire_lane(kHook, getpid(), 1);
  const i32 ended = run_in_thread([] {});

  for (unsigned i = 0; i < rounds(50'000); ++i)
    REQUIRE(session->acquire_lane(kHook, ended, 2) != 0);

  CHECK(session->lanes.size() - 1 <= most);
}

TEST_CASE("lanes come in steps, each with its own memory") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  std::set<u64> rings;
  for (u32 i = 1; i <= 100; ++i) {
    const u32 lane = session->acquire_lane(kHook, getpid(), i);
    REQUIRE(session->ring(lane) != nullptr);
    CHECK(session->lanes.at(lane).thread == i);
    rings.insert(session->lanes.at(lane).ring_offset);
  }
  CHECK(rings.size() == 100);
  CHECK(session->lanes.size() - 1 < 100 + 8);
  u32 free = 0;
  for (u32 lane = 1; lane < session->lanes.size(); ++lane)
    if (session->lanes.at(lane).owner_tid == 0) ++free;
  CHECK(free == session->lanes.size() - 1 - 100);
}

TEST_CASE("memory that many threads prepare at a time counts once") {
  const Scratch scratch;
  const auto session = session_in(scratch.path(), {.budget_bytes = 256 << 20});
  constexpr u32 kThreads = 16, kEntries = kSanitized ? 2'000 : 20'000;
  const u64 before = session->arena.populated_bytes();
  std::latch ready{kThreads};
  std::vector<std::thread> threads;
  for (u32 i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      ready.arrive_and_wait();
      for (u32 entry = 0; entry < kEntries; ++entry) session->full_holders.reserve(kHook, 1);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(session->full_holders.size() == kThreads * kEntries + 1);
  const u64 counted = session->arena.populated_bytes() - before;
  const u64 needed = u64{kThreads} * kEntries * sizeof(Holder);
  CHECK(counted > needed / 2);
  CHECK(counted < needed + needed / 8);
}

TEST_CASE("threads that reserve concurrently get different entries, all readable") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  constexpr u32 kEach = 20'000;
  std::vector<std::thread> threads;
  for (i32 number = 1; number <= 4; ++number)
    threads.emplace_back([&session, number] {
      for (u32 i = 0; i < kEach; ++i) {
        const u32 entry = session->threads.reserve(kHook, 1);
        REQUIRE(entry != 0);
        Thread& thread = session->threads.at(entry);
        REQUIRE(thread.tid == 0);
        thread.tid = number;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto view = session->view();
  REQUIRE(view.count(TableId::threads) == 1 + 4 * kEach);
  u32 found[5] = {};
  Thread thread;
  for (u64 i = 1; i < view.count(TableId::threads); ++i) {
    REQUIRE(view.read(TableId::threads, i, thread));
    ++found[thread.tid];
  }
  for (const u32 number : {1u, 2u, 3u, 4u}) CHECK(found[number] == kEach);
}

TEST_CASE("an ended thread's lane goes to the next thread") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  const u32 main_lane = session->acquire_lane(kHook, getpid(), 1);
  REQUIRE(main_lane == 1);
  CHECK(session->lanes.at(1).ring_slots == 4096);
  REQUIRE(session->ring(1) != nullptr);

  u32 first = 0, second = 0, third = 0;
  run_in_thread([&] { first = session->acquire_lane(kHook, gettid(), 2); });
  CHECK(session->lanes.at(first).ring_slots == 256);
  session->lanes.at(first).spaces[0].usable_allocated_bytes = 101;
  run_in_thread([&] {
    second = session->acquire_lane(kHook, gettid(), 3);
    session->release_lane(kHook, second);
    third = session->acquire_lane(kHook, gettid(), 4);
  });
  CHECK(first == 2);
  CHECK(second == first);
  CHECK(third == first);
  CHECK(session->lanes.at(first).thread == 4);
  CHECK(session->view().totals(Space::heap).allocated_bytes == 101);
}

namespace {

Thread thread_named(i32 tid, u64 first_seen_ns) {
  Thread thread{};
  thread.tid = tid;
  thread.group = 4;
  std::snprintf(thread.name, sizeof thread.name, "worker %u",
                static_cast<u32>(first_seen_ns / 1'000'000'000));
  thread.first_seen_ns = first_seen_ns;
  return thread;
}

}  // namespace

TEST_CASE("the latest threads have entries, and those that live or were named by a failure") {
  const Scratch scratch;
  const auto session = session_in(scratch.path(), {.budget_bytes = 1 << 20});
  const i32 ended = run_in_thread([] {});
  constexpr u64 kSecond = 1'000'000'000;
  const u32 alive = session->take_thread_entry(kHook, thread_named(getpid(), kSecond));
  const u32 named = session->take_thread_entry(kHook, thread_named(ended, 2 * kSecond));
  const u32 passing = session->take_thread_entry(kHook, thread_named(ended, 3 * kSecond));
  session->keep_thread_entry(named);

  constexpr u64 kLast = 100'000;
  std::vector<u32> entries(kLast + 1);
  for (u64 i = 4; i <= kLast; ++i) {
    entries[i] = session->take_thread_entry(kHook, thread_named(ended, i * kSecond));
    REQUIRE((entries[i] != 0 && entries[i] != alive && entries[i] != named));
  }

  CHECK(session->threads.size() == 1 + 1024);
  const View view = session->view();
  CHECK(view.thread_at(alive, 5 * kSecond).tid == getpid());
  CHECK(view.thread_at(named, 5 * kSecond).first_seen_ns == 2 * kSecond);
  for (u64 i = kLast - 1000; i <= kLast; ++i) {
    const Thread thread = view.thread_at(entries[i], i * kSecond);
    REQUIRE((thread.tid == ended && thread.first_seen_ns == i * kSecond));
    REQUIRE(thread.name == std::string{"worker "} + std::to_string(i));
  }
  // An event of its first thread does not get the name of its last one.
  CHECK(view.thread_at(passing, 3 * kSecond).tid == 0);
}

TEST_CASE("as many threads as live have entries and lanes, up to what there may be") {
  const Scratch scratch;
  const auto session = session_in(scratch.path(), {.budget_bytes = 64 << 20});
  u32 entry = 0, last_entry = 0, entries = 0;
  for (u32 i = 0; i < 70'000; ++i) {
    entry = session->take_thread_entry(kHook, thread_named(getpid(), i));
    if (entry != 0) ++entries, last_entry = entry;
  }
  CHECK(entries == kMostThreadEntries);
  CHECK(last_entry == kMostThreadEntries);
  std::atomic<i32> other{0};
  std::atomic<bool> ends{false};
  std::thread lives([&] {
    other = gettid();
    other.notify_one();
    ends.wait(false);
  });
  other.wait(0);
  u32 lane = 0, lanes = 0;
  for (u32 i = 0; i < 5000; ++i) {
    lane = session->acquire_lane(kHook, other, 1);
    lanes += lane != 0;
    REQUIRE(lane < kMostLanes);
  }
  ends = true;
  ends.notify_one();
  lives.join();
  CHECK(lanes > kMostLanes - 16);
  CHECK(lane == 0);
  CHECK(session->acquire_lane(kHook, getpid(), 1) != 0);  // one that has ended gives way
}

TEST_CASE("threads append concurrently, and a reader sees complete entries") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  constexpr u32 kEach = 20'000;
  const auto write = [&](u32 writer) {
    u32 index = 0;
    for (u32 number = 1; number <= kEach; ++number) {
      tests::append_node(*session, index, writer, number);
    }
  };
  std::thread first{write, 1}, second{write, 2};
  const View view = session->view();
  u64 torn = 0;
  for (u32 round = 0; round < 200; ++round) {
    Node node{};
    const u64 count = view.count(TableId::nodes);
    torn += count > 1 && (!view.read(TableId::nodes, count - 1, node) || node.frame == 0);
  }
  first.join();
  second.join();
  CHECK(torn == 0);
  u64 sums[3] = {};
  Node node{};
  for (u32 index = 1; view.read(TableId::nodes, index, node); ++index)
    sums[node.parent] += node.frame;
  CHECK(sums[1] == u64{kEach} * (kEach + 1) / 2);
  CHECK(sums[2] == sums[1]);
}

TEST_CASE("a holder or a node whose other part does not exist has nothing of it") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  u32 index = 0;
  REQUIRE(session->holders.append(kHook, index, [](HolderEntry& entry) {
    entry.node = 7;
    entry.figures = kFullHolder | 1'000'000;
  }));
  Holder holder{};
  holder.live_bytes = 1;
  REQUIRE(session->view().read(TableId::holders, index, holder));
  CHECK(holder.node == 7);
  CHECK(holder.live_bytes == 0);

  REQUIRE(session->nodes.append(kHook, index, [](NodeEntry& entry) { entry = {0, 1'000'000}; }));
  Node node{};
  CHECK_FALSE(session->view().read(TableId::nodes, index, node));
  CHECK(session->view().walk(index, [](u64) {}) == 0);
}
