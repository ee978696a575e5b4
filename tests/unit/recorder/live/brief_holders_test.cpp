// Holders whose figures are in one word, compared with figures in words of their own.
#include "common/session/brief_holder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "recorder/live/full_holders.h"
#include "recorder/live/holder_sums.h"
#include "recorder/live/holder_table.h"
#include "tests/unit/recorder/session/fixtures.h"
#include "tests/unit/sanitized.h"

using namespace oomrec;
using namespace oomrec::live;
using namespace oomrec::session;

namespace {

constexpr u32 kLarger = Candidates::kMost + 1;

constinit HolderTable g_holders;

void need_session(const char* directory, u64 budget_bytes = u64{64} << 20) {
  if (g_session.active()) return;
  Settings settings;
  settings.mode = Mode::exact;
  settings.session_directory = directory;
  settings.budget_bytes = budget_bytes;
  REQUIRE(g_session.create(kHook, settings));
  // Larger ones than any of the tests', which would otherwise be candidates for the largest, and
  // full.
  for (u32 i = 0; i < kLarger; ++i)
    g_holders.grow(kHook, g_holders.find_or_add(kHook, 1 + i, Space::heap, Api::malloc, 0),
                   u64{1} << 40, 1);
}

std::atomic<u32>& epoch() { return g_session.header().spaces[0].peak_epoch; }

// One thread's sum for one holder after another.
class Summer {
 public:
  bool flush(u32 holder, const HolderChange& change, u32 at_epoch) {
    sum_.holder = holder;
    sum_.allocated_bytes = change.allocated_bytes;
    sum_.freed_bytes = change.freed_bytes;
    sum_.counts = change.allocated << 32 | change.freed;
    temporary_ = static_cast<u32>(change.temporary);
    const bool flushed = g_holders.flush(kHook, sum_, temporary_, at_epoch);
    return flushed && sum_.counts == 0 && sum_.allocated_bytes == 0 && sum_.freed_bytes == 0 &&
           temporary_ == 0;
  }

 private:
  HolderSum sum_{};
  std::atomic<u32> temporary_{0};
};

// What a holder's figures must be.
struct Reference {
  u64 live_bytes = 0, live_count = 0, total_bytes = 0, total_count = 0, temporary = 0;
  u64 peak_bytes = 0, peak_count = 0;
  u32 peak_epoch = 0;

  void add(const HolderChange& change, u32 at_epoch, u32 now) {
    if (at_epoch == now && peak_epoch != now) {
      peak_bytes = live_bytes;
      peak_count = live_count;
      peak_epoch = now;
    } else if (at_epoch != now && peak_epoch == now) {
      peak_bytes += change.live_bytes();
      peak_count += change.live_count();
    }
    live_bytes += change.live_bytes();
    live_count += change.live_count();
    total_bytes += change.allocated_bytes;
    total_count += change.allocated;
    temporary += change.temporary;
  }

  bool is(const Holder& holder, u32 now) const {
    const bool changed = peak_epoch == now;
    return holder.live_bytes == live_bytes && holder.live_count == live_count &&
           holder.total_bytes == total_bytes && holder.total_count == total_count &&
           holder.temporary_count == temporary &&
           holder.peak_bytes == (changed ? peak_bytes : live_bytes) &&
           holder.peak_count == (changed ? peak_count : live_count);
  }
};

}  // namespace

TEST_CASE("figures that fit into a word come out of it as they went in") {
  const BriefHolder all{32'767, 255, 254, 253, 252, 65'535};
  REQUIRE(all.fits());
  CHECK_FALSE(is_full(all.packed()));
  Holder holder{};
  BriefHolder::unpacked(all.packed()).expand(holder);
  CHECK(holder.live_bytes == 32'767);
  CHECK(holder.live_count == 1);
  CHECK(holder.total_bytes == 255 * 32'767);
  CHECK(holder.total_count == 255);
  CHECK(holder.temporary_count == 253);
  CHECK(holder.peak_bytes == 252 * 32'767);
  CHECK(holder.peak_count == 252);
  CHECK(holder.peak_epoch == 65'535);
}

TEST_CASE("a holder is brief until its blocks differ or are many") {
  const Scratch scratch;
  need_session(scratch.path());
  static u32 node = 1'000'000;
  const u32 now = epoch();
  const u32 holder = g_holders.find_or_add_brief(kHook, ++node, Space::heap, Api::calloc);
  REQUIRE(holder != 0);
  Summer sums;
  REQUIRE(sums.flush(holder, {96, 0, 4, 0, 0}, now));
  REQUIRE(sums.flush(holder, {0, 48, 0, 2, 1}, now));
  CHECK(find_full(holder) == nullptr);
  SUBCASE("another size") { REQUIRE(sums.flush(holder, {25, 0, 1, 0, 0}, now)); }
  SUBCASE("sizes that only together look like the present one") {
    REQUIRE(sums.flush(holder, {48, 0, 2, 0, 0}, now));
    CHECK(find_full(holder) == nullptr);
    REQUIRE(sums.flush(holder, {0, 23, 0, 1, 0}, now));
  }
  SUBCASE("many blocks") {
    REQUIRE(sums.flush(holder, {251 * 24, 251 * 24, 251, 251, 0}, now));
    CHECK(find_full(holder) == nullptr);
    REQUIRE(sums.flush(holder, {24, 24, 1, 1, 0}, now));
  }
  SUBCASE("freed, at the peak, before the allocation is seen") {
    epoch() = now + 1;
    REQUIRE(sums.flush(holder, {0, 72, 0, 3, 0}, now));
    CHECK(find_full(holder) == nullptr);
    CHECK(live_bytes_of(holder) == -24);
    REQUIRE(sums.flush(holder, {24, 0, 1, 0, 0}, now + 1));
  }
  Holder read{};
  const bool is_brief = find_full(holder) == nullptr;
  REQUIRE(g_session.view().holder(holder, read));
  CHECK(read.node == node);
  CHECK(read.api == static_cast<u16>(Api::calloc));
  CHECK(read.temporary_count == 1);
  CHECK_FALSE(is_brief);
  CHECK(live_bytes_of(holder) == static_cast<i64>(read.live_bytes.load()));
}

TEST_CASE("both forms have the figures of each change, at peak steps too") {
  const Scratch scratch;
  need_session(scratch.path());
  constexpr u32 kHolders = 300;
  std::mt19937 random{20261127};
  std::vector<u32> holders;
  std::vector<Reference> references(kHolders);
  std::vector<u64> sizes;
  for (u32 i = 0; i < kHolders; ++i) {
    holders.push_back(g_holders.find_or_add_brief(kHook, 2'000'000 + i, Space::heap, Api::malloc));
    references[i].peak_epoch = epoch();
    sizes.push_back(random() % 200);
  }
  Summer sums;
  u32 brief = 0, full = 0, wrong = 0;
  for (u32 round = 0; round < rounds(60'000); ++round) {
    const u32 i = static_cast<u32>(random() % kHolders);
    if (random() % 50 == 0) ++epoch();
    const u32 at_epoch = epoch() - (random() % 4 == 0 ? 1 : 0);
    const u64 allocated = random() % 3, freed = random() % 3;
    if (allocated == 0 && freed == 0) continue;
    const u64 size = i % 3 == 0 && random() % 20 == 0 ? random() % 300 : sizes[i];
    const HolderChange change{allocated * size, freed * size, allocated, freed,
                              freed == 0 ? 0 : random() % 2};
    REQUIRE(sums.flush(holders[i], change, at_epoch));
    references[i].add(change, at_epoch, epoch());
    Holder read{};
    REQUIRE(g_session.view().holder(holders[i], read));
    wrong += !references[i].is(read, epoch());
    ++(find_full(holders[i]) == nullptr ? brief : full);
  }
  CHECK(wrong == 0);
  CHECK(brief > 1'000);
  CHECK(full > 1'000);
}

TEST_CASE("four threads change the same holders") {
  const Scratch scratch;
  need_session(scratch.path());
  constexpr u32 kHolders = 64, kRounds = rounds(20'000);
  std::vector<u32> holders;
  for (u32 i = 0; i < kHolders; ++i)
    holders.push_back(g_holders.find_or_add_brief(kHook, 3'000'000 + i, Space::heap, Api::malloc));
  std::atomic<u64> count[kHolders]{}, bytes[kHolders]{};
  std::vector<std::thread> threads;
  for (u32 thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937 random{thread};
      Summer sums;
      for (u32 round = 0; round < kRounds; ++round) {
        // Later holders are changed seldom, and stay brief.
        const u32 i = static_cast<u32>(random() % kHolders * (random() % kHolders) / kHolders);
        const u64 size = i % 8 == 0 ? random() % 100 : i;
        sums.flush(holders[i], {2 * size, size, 2, 1, 0}, epoch());
        count[i] += 1;
        bytes[i] += size;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (u32 i = 0; i < kHolders; ++i) {
    Holder read{};
    REQUIRE(g_session.view().holder(holders[i], read));
    CHECK(read.live_count == count[i]);
    CHECK(read.total_count == 2 * count[i]);
    CHECK(read.live_bytes == bytes[i]);
    CHECK(read.total_bytes == 2 * bytes[i]);
  }
}

TEST_CASE("a free by a thread without a lane is counted when no full holder can be added") {
  const Scratch scratch;
  int step = 0;
  const auto expect = [&](bool is_true) {  // in the child, whose failed checks doctest does not see
    ++step;
    if (!is_true) _exit(step);
  };
  Child child{[&] {
    g_session.detach(kHook);
    g_holders.reset(kHook);
    need_session(scratch.path(), u64{1} << 20);
    constexpr u32 kNode = 1'001, kOther = 1'002;
    HolderSums sums;
    Lane lane{};
    sums.use(lane, nullptr, nullptr);
    expect(sums.grow(kHook, g_holders, kNode, Api::malloc, 48));
    expect(sums.grow(kHook, g_holders, kNode, Api::malloc, 48));
    const u32 holder = g_holders.find_or_add_brief(kHook, kNode, Space::heap, Api::malloc);
    expect(g_holders.find_or_add_brief(kHook, kOther, Space::heap, Api::malloc) != 0);
    u32 unused = 0;
    while (g_session.full_holders.append(kHook, unused, [](Holder&) {})) {
    }

    sums.shrink(kHook, g_holders, kNode, 48, true);
    expect(sums.grow(kHook, g_holders, kOther, Api::malloc, 16));
    expect(!sums.grow(kHook, g_holders, kOther, Api::malloc, 24));  // another size needs a full one
    Holder read{};
    expect(find_full(holder) == nullptr);
    expect(g_session.view().holder(holder, read));
    expect(read.live_count == 1 && read.live_bytes == 48);
    expect(read.total_bytes == 96 && read.temporary_count == 1);
  }};
  CHECK(WEXITSTATUS(child.wait()) == 0);  // the step that failed
}

TEST_CASE("a process killed while holders change, and become full, loses none of their figures") {
  constexpr unsigned kKills = rounds(150);
  constexpr u32 kHolders = 200;
  struct Progress {
    std::atomic<u64> flushed[kHolders];
  };
  auto* const progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(progress != MAP_FAILED);
  const Scratch scratch;
  std::mt19937 random{20261128};
  u64 brief = 0, full = 0, wrong = 0;
  for (unsigned kill = 0; kill < kKills; ++kill) {
    for (auto& flushed : progress->flushed) flushed = 0;
    Signal ready;
    Child child{[&] {
      g_session.detach(kHook);
      g_holders.reset(kHook);
      need_session(scratch.path());
      u32 holders[kHolders];
      for (u32 i = 0; i < kHolders; ++i)
        holders[i] = g_holders.find_or_add_brief(kHook, 1'000 + i, Space::heap, Api::malloc);
      Summer sums;
      ready.give();
      for (u64 round = 1;; ++round)
        for (u32 i = 0; i < kHolders; ++i) {  // each allocates one block more than it frees
          const u64 size = 16 + i % 7 * (round % (50 + i) == 0);
          sums.flush(holders[i], {3 * size, 2 * size, 3, 2, 1}, 0);
          progress->flushed[i] = round;
        }
    }};
    ready.take();
    const u64 rounds = random() % 150;  // all are full after 85
    while (progress->flushed[0] < rounds) usleep(20);
    usleep(static_cast<useconds_t>(random() % 200));
    child.kill();
    const std::string path = files_in(scratch.own()).at(0);
    const Recording recording{path};
    const View view = recording.view();
    REQUIRE(view.count(TableId::holders) == 1 + kLarger + kHolders);
    for (u32 i = 0; i < kHolders; ++i) {
      HolderEntry entry{};
      Holder read{};
      REQUIRE(view.read(TableId::holders, 1 + kLarger + i, entry));
      REQUIRE(view.holder(1 + kLarger + i, read));
      const u64 flushed = progress->flushed[i];
      const u64 total = read.total_count, live = read.live_count;
      wrong += total != 3 * flushed && total != 3 * (flushed + 1);
      const bool is_brief = !is_full(entry.figures);
      // The words of a full one are changed one after the other.
      wrong += is_brief ? total != 3 * live : live != flushed && live != flushed + 1;
      wrong += is_brief && read.temporary_count != live;
      ++(is_brief ? brief : full);
    }
    std::filesystem::remove(path);
  }
  munmap(progress, sizeof(Progress));
  MESSAGE(brief << " brief holders, " << full << " full ones");
  CHECK(wrong == 0);
  CHECK(brief > 100);
  CHECK(full > 100);
}
