// A look at this process' own pages, and at smaps as the kernel may write it.
#include "common/residency/residency.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/machine/page.h"
#include "common/residency/rows.h"
#include "common/system/files.h"
#include "recorder/live/holder_table.h"
#include "recorder/live/range_table.h"
#include "recorder/session/writer.h"
#include "tests/unit/common/limits/machine.h"

using namespace oomrec;
using session::g_session;
using session::ResidentKind;

namespace {

const InHook kHook = OutsideHooks::in_hook();
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

live::HolderTable g_holders;
live::RangeTable g_ranges{g_holders};

std::uint32_t new_holder() {
  if (!g_session.active()) {
    session::Settings settings;
    settings.session_directory = "/tmp";
    settings.mode = Mode::exact;  // with a side table
    REQUIRE(g_session.create(kHook, settings));
    g_session.remove_file(kHook);
  }
  static std::uint32_t node = 0;
  std::uint32_t entry = 0;
  REQUIRE(g_session.nodes.append(kHook, entry, [](session::NodeEntry&) noexcept {}));
  return g_holders.find_or_add(kHook, node = entry, Space::map, Api::mmap, 0);
}

char* map(std::uint64_t bytes, void* at = nullptr) {
  void* const memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0);
  return static_cast<char*>(memory);
}

std::uint32_t hold(char* memory, std::uint64_t bytes, std::uint32_t birth_s = 0) {
  const std::uint32_t holder = new_holder();
  g_ranges.map(kHook, reinterpret_cast<std::uint64_t>(memory), bytes, session::RangeKind::counted,
               true, holder, birth_s);
  return holder;
}

struct Looked : residency::Look {
  const session::ResidencyRow* row(std::uint32_t holder) const {
    for (std::uint32_t i = 0; i < found.row_count; ++i)
      if (rows[i].holder == holder) return &rows[i];
    return nullptr;
  }
  std::uint64_t untouched(std::uint32_t holder) const {
    return row(holder) != nullptr ? row(holder)->untouched_bytes : 0;
  }
  std::uint64_t kind(ResidentKind kind) const {
    return found.kind_bytes[static_cast<std::size_t>(kind)];
  }
};

Looked look(std::size_t most_pieces = 1000, std::uint64_t most_ns = kNever) {
  Looked looked;
  std::vector<residency::Piece> pieces(most_pieces);
  std::vector<char> text(8192);
  std::vector<std::uint64_t> blocks(512);
  residency::look_at(kHook, 0, g_session.view(), {pieces, text, blocks},
                     residency::Deadline{most_ns}, looked);
  return looked;
}

}  // namespace

TEST_CASE("of each holder, what was never touched, given back, or only read") {
  constexpr std::uint64_t kBytes = 8 * kMiB;
  // Adjacent: one mapping of the kernel's, with five holders.
  char* const base = map(5 * kBytes);
  char *const full = base, *const untouched = base + kBytes, *const half = base + 2 * kBytes,
              *const read = base + 3 * kBytes, *const given_back = base + 4 * kBytes;
  std::memset(full, 1, kBytes);
  std::memset(half + 2 * kMiB, 1, kBytes / 2);
  std::memset(given_back, 1, kBytes);
  REQUIRE(madvise(given_back, kBytes, MADV_DONTNEED) == 0);
  const volatile char* const pages = read;
  for (std::uint64_t at = 0; at < kBytes; at += machine::page_bytes()) REQUIRE(pages[at] == 0);

  const std::uint32_t holders[] = {hold(full, kBytes), hold(untouched, kBytes, 7),
                                   hold(half, kBytes), hold(read, kBytes),
                                   hold(given_back, kBytes)};
  const Looked looked = look();
  REQUIRE(looked.found.time_ns != 0);
  CHECK(looked.found.flags == 0);
  CHECK(looked.untouched(holders[0]) == 0);
  CHECK(looked.untouched(holders[1]) == kBytes);
  CHECK(looked.row(holders[1])->birth_s == 7);
  CHECK(looked.untouched(holders[2]) == kBytes / 2);
  CHECK(looked.untouched(holders[3]) == kBytes);
  CHECK(looked.untouched(holders[4]) == kBytes);
  CHECK(looked.found.untouched_bytes == 3 * kBytes + kBytes / 2);
  CHECK(looked.kind(ResidentKind::held) == kBytes + kBytes / 2);

  SUBCASE("the pages that a fork shares are the child's, too") {
    // They look like pages of zeros there; with both in one mapping a holder's part is an estimate.
    REQUIRE(madvise(read, kBytes, MADV_DONTNEED) == 0);
    const pid_t child = fork();
    if (child == 0) {
      const Looked in_child = look();
      const bool same = in_child.untouched(holders[0]) == 0 &&
                        in_child.untouched(holders[1]) == kBytes &&
                        in_child.untouched(holders[2]) == kBytes / 2;
      _exit(same ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 0);
  }
  SUBCASE("with memory for two pieces, the others count as touched") {
    const Looked two = look(2);
    CHECK(two.found.untouched_bytes <= 2 * kBytes);
  }
  SUBCASE("without time, all of them, as the process has so much in memory") {
    constexpr std::uint64_t kMore = 64 * kMiB;
    char* const more = map(kMore);
    std::memset(more, 1, kMore);
    const Looked late = look(1000, 0);
    CHECK(late.found.flags == session::kResidencyPartial);
    CHECK(late.found.untouched_bytes == 0);
    munmap(more, kMore);
  }
  SUBCASE("without time, no more than the process has in memory") {
    constexpr std::uint64_t kHuge = 4096 * kMiB, kMuch = 512 * kMiB;
    char *const huge = map(kHuge), *const much = map(kMuch);
    const std::uint32_t others[] = {hold(huge, kHuge), hold(much, kMuch)};
    const Looked late = look(1000, 0);
    CHECK(late.found.flags == session::kResidencyPartial);
    const std::uint64_t touched = 5 * kBytes + kHuge + kMuch - late.found.untouched_bytes;
    CHECK(touched <= late.found.touched_bytes);
    CHECK(touched >= late.found.touched_bytes / 10 * 9);
    CHECK(late.untouched(others[0]) > kHuge - late.found.touched_bytes);
    CHECK(late.untouched(others[1]) > kMuch - late.found.touched_bytes);
    g_ranges.unmap(kHook, reinterpret_cast<std::uint64_t>(huge), kHuge);
    g_ranges.unmap(kHook, reinterpret_cast<std::uint64_t>(much), kMuch);
    munmap(huge, kHuge);
    munmap(much, kMuch);
  }
  g_ranges.unmap(kHook, reinterpret_cast<std::uint64_t>(base), 5 * kBytes);
  munmap(base, 5 * kBytes);
}

TEST_CASE("what is touched of a reservation is not untouched of its holder") {
  constexpr std::uint64_t kBytes = 64 * kMiB;
  char* const memory = map(kBytes);
  std::memset(memory + kMiB, 1, 3 * kMiB);
  const std::uint32_t holder = new_holder();
  g_ranges.reserve(kHook, reinterpret_cast<std::uint64_t>(memory), kBytes,
                   session::RangeKind::reservation, holder, 0);
  const Looked looked = look();
  REQUIRE(looked.row(holder) != nullptr);
  CHECK(looked.row(holder)->untouched_bytes == 0);
  CHECK(looked.row(holder)->reserved_bytes == 3 * kMiB);
  CHECK(residency::resident_by(*looked.row(holder), 0) == 3 * kMiB);
  g_ranges.unmap(kHook, reinterpret_cast<std::uint64_t>(memory), kBytes);
  munmap(memory, kBytes);
}

TEST_CASE("a mapping with small blocks of the heap is the heap's, whatever its size and place") {
  constexpr std::uint64_t kBytes = 96 * kMiB;  // larger than an arena of glibc
  char* const memory = map(kBytes);
  std::memset(memory, 1, 4 * kMiB);  // a sanitizer's own memory may grow by less than one
  const std::uint64_t before = look().kind(ResidentKind::unheld);
  CHECK(before >= 3 * kMiB);
  const std::uint64_t heap = look().kind(ResidentKind::heap);
  std::uint32_t page = 0, block = 0;

  SUBCASE("in the side table") {
    REQUIRE(g_session.side_pages.append(kHook, page, [&](session::SidePage& entry) noexcept {
      entry = {reinterpret_cast<std::uint64_t>(memory) & ~(session::kSideSpanBytes - 1), 0,
               session::kLargestSideShift};
    }));
  }
  SUBCASE("sampled") {
    const std::uint32_t holder =
        g_holders.find_or_add(kHook, 1, Space::heap, Api::malloc, session::kHolderEstimated);
    REQUIRE(g_session.live_blocks.append(kHook, block, [&](session::LiveBlock& entry) noexcept {
      entry.bytes = 1000;
      entry.holder = holder;
      entry.weight = 20;
      entry.address = reinterpret_cast<std::uint64_t>(memory + kMiB);
    }));
  }
  CHECK(look().kind(ResidentKind::unheld) <= before - 3 * kMiB);
  CHECK(look().kind(ResidentKind::heap) >= heap + 3 * kMiB);
  if (page != 0) g_session.side_pages.at(page).start = 0;
  if (block != 0) g_session.live_blocks.at(block).address = 0;
  munmap(memory, kBytes);
}

TEST_CASE("mappings below the smallest piece of a look count as held") {
  constexpr std::uint64_t kBytes = 16 << 10;
  char* const memory = map(200 * kBytes);
  std::memset(memory, 1, 200 * kBytes);
  const Looked before = look();
  const std::uint32_t holder = new_holder();
  for (std::uint64_t i = 0; i < 200; ++i)
    g_ranges.map(kHook, reinterpret_cast<std::uint64_t>(memory) + i * kBytes, kBytes,
                 session::RangeKind::counted, true, holder, 0);
  const Looked after = look();
  CHECK(after.kind(ResidentKind::held) == before.kind(ResidentKind::held) + 200 * kBytes);
  CHECK(after.kind(ResidentKind::unheld) <= before.kind(ResidentKind::unheld) - 190 * kBytes);
  g_ranges.unmap(kHook, reinterpret_cast<std::uint64_t>(memory), 200 * kBytes);
  munmap(memory, 200 * kBytes);
}

TEST_CASE("smaps of other kinds of memory: their resident parts add up") {
  tests::Machine machine;
  machine.file("/proc/self/pagemap", "");
  const auto area = [](const char* first_line, int rss, int anonymous, int swap, int huge = 0) {
    return std::string{first_line} + "\nSize: 100 kB\nRss: " + std::to_string(rss) +
           " kB\nPss: 1 kB\nAnonymous: " + std::to_string(anonymous) +
           " kB\nSwap: " + std::to_string(swap) + " kB\nPrivate_Hugetlb: " + std::to_string(huge) +
           " kB\nVmFlags: rd wr\n";
  };
  std::string smaps;
  smaps += area("55550000-55560000 rw-p 00000000 00:00 0     [heap]", 8, 8, 4);
  // Of several threads: the C library has marked the ends of their stacks by guard regions, which
  // split no mapping.
  smaps +=
      area("7fffe0001000-7fffe1801000 rw-p 00000000 00:00 0", 68, 68, 0) + "VmFlags: rd wr gu nh\n";
  smaps += area("7ffff0000000-7ffff0021000 rw-p 00000000 00:00 0", 16, 16, 0);
  smaps +=
      area("7ffff5000000-7ffff5010000 r-xp 00000000 08:01 77     /usr/lib/libc.so.6", 32, 0, 0);
  smaps += area("7ffff5020000-7ffff5030000 rw-p 00000000 08:01 77     /data/model.pt", 64, 60, 0);
  smaps += area("7ffff5040000-7ffff5050000 rw-s 00000000 00:01 9     /dev/shm/psm_1", 28, 0, 0);
  smaps +=
      area("7ffff5060000-7ffff5070000 rw-s 00000000 00:01 10     /memfd:x (deleted)", 24, 0, 0);
  smaps +=
      area("7ffff5080000-7ffff5090000 rw-p 00000000 00:00 0     [anon:libc_malloc]", 12, 12, 0);
  smaps += area("7ffff50a0000-7ffff50b0000 rw-p 00000000 00:0f 1     /anon_hugepage", 0, 0, 0, 48);
  // By its file system, not by its directory's name.
  smaps += area("7ffff50c0000-7ffff50d0000 rw-s 00000000 00:2b 11     /tmp/kept", 36, 0, 0);
  smaps += area("7ffff50e0000-7ffff50f0000 rw-p 00000000 00:2b 12     /tmp/copied", 40, 4, 0);
  smaps += area("7ffff5100000-7ffff5110000 r--s 00000000 00:2a 13     /srv/table", 44, 0, 0);
  machine.file("/proc/self/mountinfo",
               "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
               "44 21 0:42 / /srv rw shared:5 - overlay tmpfs rw,lowerdir=/a\n"
               "45 21 0:43 / /tmp rw,nosuid,nodev shared:6 - tmpfs tmpfs rw,size=64k\n");
  // A recording, by its file's name, not by its directory's.
  smaps += area(
      "7ffff5120000-7ffff5130000 rw-s 00000000 08:01 14     "
      "/tmp/oomrec-0/vm-19364-8167195-4faeb5ae.session (deleted)",
      52, 0, 0);
  smaps += area("7ffff5140000-7ffff5150000 r--s 00000000 08:01 15     /srv/oomrec-tests/table", 56,
                0, 0);
  smaps += area("7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0     [stack]", 20, 20, 0);
  // It has grown while it was read.
  smaps += area("7ffffffd0000-7ffffffff000 rw-p 00000000 00:00 0     [stack]", 24, 24, 0);
  machine.file("/proc/self/smaps", smaps);
  new_holder();
  const Looked looked = look();
  REQUIRE(looked.found.time_ns != 0);
  constexpr std::uint64_t kKiB = 1024;
  CHECK(looked.kind(ResidentKind::recorder) == 52 * kKiB);
  CHECK(looked.kind(ResidentKind::heap) == 24 * kKiB);
  CHECK(looked.kind(ResidentKind::files) == (32 + 4 + 48 + 44 + 56) * kKiB);
  CHECK(looked.kind(ResidentKind::written_files) == (60 + 4) * kKiB);
  CHECK(looked.kind(ResidentKind::shared) == (52 + 36 + 36) * kKiB);
  CHECK(looked.kind(ResidentKind::unheld) == 12 * kKiB);
  CHECK(looked.kind(ResidentKind::stacks) == (20 + 68) * kKiB);
  const auto& kinds = looked.found.kind_bytes;
  CHECK(std::accumulate(std::begin(kinds), std::end(kinds), std::uint64_t{0}) == 548 * kKiB);
  CHECK(looked.found.touched_bytes == 552 * kKiB);
}

TEST_CASE("terabytes that are reserved do not use up the time of a look") {
  // Two adjacent reservations: one area of the kernel's. A MiB of the first one's begin is touched,
  // and another one beyond so many holes that nobody reads up to there.
  constexpr std::uint64_t kStart = 0x1000'0000, kBytes = std::uint64_t{32} << 30;
  const std::uint64_t page = machine::page_bytes();
  std::string entries((kStart + (std::uint64_t{20} << 30)) / page * 8, '\0');
  const std::string touched = [&] {
    std::string text;
    for (std::uint64_t at = 0; at < kMiB; at += page) text += std::string("\0\0\0\0\0\0\0\x81", 8);
    return text;
  }();
  entries.replace(kStart / page * 8, touched.size(), touched);
  tests::Machine machine;
  machine.file("/proc/self/pagemap", entries + touched);
  std::uint32_t holders[2];
  for (std::uint64_t i = 0; i < 2; ++i) {
    holders[i] = new_holder();
    g_ranges.map(kHook, kStart + i * kBytes, kBytes, session::RangeKind::counted, true, holders[i],
                 0);
  }
  const auto look_with = [&](int rss_kib) {
    machine.file("/proc/self/smaps",
                 "10000000-1010000000 rw-p 00000000 00:00 0 \nRss: " + std::to_string(rss_kib) +
                     " kB\nAnonymous: " + std::to_string(rss_kib) + " kB\n");
    return look();
  };
  const auto touched_of = [&](const Looked& looked, std::uint32_t holder) {
    return kBytes - looked.untouched(holder);
  };
  const Looked found = look_with(1024);
  CHECK(touched_of(found, holders[0]) == kMiB);
  CHECK(touched_of(found, holders[1]) == 0);
  const Looked divided = look_with(2048);  // whose the second MiB is has not been read
  CHECK(divided.kind(ResidentKind::held) >= 2 * kMiB - 2);
  CHECK(touched_of(divided, holders[0]) >= kMiB);
  CHECK(touched_of(divided, holders[1]) >= kMiB / 4);
  g_ranges.unmap(kHook, kStart, 2 * kBytes);
}

TEST_CASE("large blocks in the heap count as held, the rest of it as the heap") {
  // As glibc has them, whose threshold for mappings of their own rises to 32 MiB: in [heap], and in
  // the arena of a thread that has no small block.
  tests::Machine machine;
  machine.file("/proc/self/pagemap", "");
  machine.file("/proc/self/smaps",
               "55550000-55650000 rw-p 00000000 00:00 0     [heap]\nRss: 1024 kB\n"
               "Anonymous: 1024 kB\nSwap: 0 kB\n"
               "7ff000000000-7ff000100000 rw-p 00000000 00:00 0 \nRss: 1024 kB\n"
               "Anonymous: 1024 kB\nSwap: 0 kB\n");
  constexpr std::uint64_t kKiB = 1024, kBlock = 0x55560000, kInArena = 0x7ff0'0002'0000;
  hold(reinterpret_cast<char*>(kBlock), 256 * kKiB);
  hold(reinterpret_cast<char*>(kInArena), 128 * kKiB);
  const Looked looked = look();
  g_ranges.unmap(kHook, kBlock, 256 * kKiB);
  g_ranges.unmap(kHook, kInArena, 128 * kKiB);
  CHECK(looked.kind(ResidentKind::held) == (256 + 128) * kKiB);
  CHECK(looked.kind(ResidentKind::heap) == (768 + 896) * kKiB);
  CHECK(looked.kind(ResidentKind::unheld) == 0);
}

TEST_CASE("static variables are the executable's data, and what follows it without a file") {
  tests::Machine machine;
  machine.file("/proc/self/pagemap", "");
  const auto area = [](const char* first_line, int kib) {
    const std::string size = std::to_string(kib) + " kB\n";
    return std::string{first_line} + "\nRss: " + size + "Anonymous: " + size + "Swap: 0 kB\n";
  };
  std::string smaps;
  smaps += area("55550000-55560000 r-xp 00000000 08:01 5     /usr/bin/solver", 0);
  smaps += area("55560000-55570000 rw-p 00010000 08:01 5     /usr/bin/solver", 16);
  smaps += area("55570000-5f570000 rw-p 00000000 00:00 0", 4096);
  smaps += area("5f571000-5f580000 rw-p 00000000 00:00 0     [heap]", 8);
  smaps += area("7f5000000000-7f5000010000 rw-p 00000000 08:01 7     /usr/lib/libm.so", 4);
  smaps += area("7f5000010000-7f5008010000 rw-p 00000000 00:00 0", 32);
  machine.file("/proc/self/smaps", smaps);
  new_holder();
  const Looked looked = look();
  constexpr std::uint64_t kKiB = 1024;
  CHECK(looked.found.variable_bytes == (16 + 4096) * kKiB);
  CHECK(looked.kind(ResidentKind::written_files) == (16 + 4096 + 4) * kKiB);
  CHECK(looked.kind(ResidentKind::unheld) == 32 * kKiB);
}

TEST_CASE("without smaps nobody has looked") {
  tests::Machine machine;
  CHECK(look().found.time_ns == 0);
}

TEST_CASE("memory is read by another thread's files once the main thread has ended") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static const pid_t main_thread = getpid();
    pthread_t thread;
    const auto look_later = [](void*) -> void* {
      const std::string path = "/proc/self/task/" + std::to_string(main_thread) + "/maps";
      char first;
      while (system::File::open(path.c_str(), O_RDONLY).read(&first, 1) == 1) usleep(1000);
      const Looked looked = look();
      _exit(looked.found.time_ns != 0 && looked.found.touched_bytes > kMiB ? 0 : 1);
    };
    if (pthread_create(&thread, nullptr, look_later, nullptr) != 0) _exit(2);
    syscall(SYS_exit, 0);  // as pthread_exit(), which unwinds the test
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what became resident later is credited to the newest memory") {
  session::ResidencyRow rows[] = {{1, 0, 100, 0, 2, 0}, {2, 0, 30, 0, 9, 0}, {3, 0, 50, 0, 2, 0}};
  CHECK(residency::credit(rows, 90, 3) == 30);  // none of memory that is older
  CHECK(residency::credit(rows, 60, 0) == 60);
  CHECK(rows[0].holder == 2);
  CHECK(rows[0].untouched_bytes == 0);
  CHECK(rows[1].holder == 1);
  CHECK(rows[1].untouched_bytes == 40);
  CHECK(rows[2].untouched_bytes == 50);
  CHECK(residency::credit(rows, 1000, 0) == 90);
  CHECK(rows[1].untouched_bytes + rows[2].untouched_bytes == 0);
}

TEST_CASE("a look without time does not replace a whole one that saw most of it") {
  const auto look = [](std::uint64_t touched_bytes, std::uint32_t flags) {
    session::Residency found{};
    found.touched_bytes = touched_bytes;
    found.flags = flags;
    return found;
  };
  constexpr std::uint32_t kPartial = session::kResidencyPartial;
  CHECK(residency::is_worse(look(400, kPartial), look(300, 0)));
  CHECK(!residency::is_worse(look(404, kPartial), look(300, 0)));
  CHECK(!residency::is_worse(look(400, kPartial), look(400, kPartial)));
  CHECK(!residency::is_worse(look(400, 0), look(400, 0)));
}

TEST_CASE("blocks of glibc and Scudo have a header, which is resident beside their live bytes") {
  new_holder();
  session::Header& header = g_session.header();
  const session::StringId before = header.allocator;
  const auto of_file = [&](std::string_view file) {
    header.allocator = g_session.add_string(kHook, file);
    return residency::block_header_bytes(g_session.view());
  };
  for (const std::string_view file :
       {"libjemalloc.so.2", "libmimalloc.so.3", "liboomrec.so", "libcool.so", ""})
    CHECK(of_file(file) == 0);
  CHECK(of_file("libclang_rt.scudo_standalone-x86_64.so") == 16);
  CHECK(of_file("libc-2.31.so") == 8);
  CHECK(of_file("libc.so.6") == 8);
  session::Holder holder{};
  holder.live_bytes = 2400;
  holder.live_count = 100;
  holder.space = static_cast<std::uint8_t>(Space::heap);
  const residency::Rows rows{g_session.view()};
  CHECK(rows.resident(1'000'000, holder) == 2400 + 800);
  holder.space = static_cast<std::uint8_t>(Space::map);
  CHECK(rows.resident(1'000'000, holder) == 2400);
  header.allocator = before;
}
