// Free runs between blocks, and the rules for remedies.
#include <doctest/doctest.h>

#include "common/system/files.h"
#include "tools/findings/fragmentation/figures.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/unit/scratch_directory.h"

using namespace oomrec;
using namespace oomrec::tools;
using bundle::HeapArea;

namespace {

constexpr std::uint64_t kPageBytes = 4096;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::vector<HeapArea> areas_of(int pid) {
  std::vector<char> buffer(8 << 10);
  bundle::HeapAreas found{pid, buffer};
  std::vector<HeapArea> areas;
  for (HeapArea area; found.next(area);) areas.push_back(area);
  return areas;
}

bool is_in(const void* block, const std::vector<HeapArea>& areas, bool main) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  return std::any_of(areas.begin(), areas.end(), [&](const HeapArea& area) {
    return address >= area.start && address < area.end && area.is_main == main;
  });
}

// A fake process with these maps.
std::vector<HeapArea> areas_in(const std::string& maps) {
  const tests::ScratchDirectory directory;
  const std::filesystem::path process = std::filesystem::path{directory.path()} / "4711";
  std::filesystem::create_directory(process);
  std::ofstream{process / "maps"} << maps;
  const system::Roots roots = system::g_roots;
  std::strcpy(system::g_roots.proc, directory.path().c_str());
  std::vector<HeapArea> areas = areas_of(4711);
  system::g_roots = roots;
  return areas;
}

findings::Fragmentation heap(std::uint64_t held, std::uint64_t live) {
  findings::Fragmentation figures;
  figures.heap.areas = findings::HeapFigures::Areas{};
  figures.heap.areas->count = 1;
  figures.heap.areas->held_bytes = held;
  figures.heap.areas->live_bytes = live;
  return figures;
}

std::vector<std::string> rules(const findings::Fragmentation& figures) {
  std::vector<std::string> names;
  for (const findings::Remedy& advice : findings::remedies_for(figures))
    names.emplace_back(advice.rule);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("glibc's areas are found: the heap, and a thread's arena") {
  void* volatile of_main = std::malloc(100);
  void* of_thread = nullptr;
  std::thread{[&] { of_thread = std::malloc(100); }}.join();
  void* const own =
      mmap(nullptr, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  const std::vector<HeapArea> areas = areas_of(getpid());

  CHECK(is_in(of_main, areas, true));
  CHECK(is_in(of_thread, areas, false));
  CHECK_FALSE(is_in(own, areas, false));
  for (const HeapArea& area : areas) {
    CHECK(area.resident_bytes != bundle::kNotCounted);
    CHECK(area.resident_bytes <= area.bytes());
    CHECK(area.resident_bytes != 0);
  }
  munmap(own, 8 << 20);
  std::free(of_main);
  std::free(of_thread);
}

TEST_CASE("lines of /proc/PID/maps that are an arena, and others") {
  const auto areas = areas_in(
      "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0                          [heap]\n"
      "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"  // an arena …
      "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n"  // … and what is left of its piece
      "7f0004000000-7f0008000000 rw-p 00000000 00:00 0 \n"  // a full one
      "7f0010000000-7f0010021000 rw-p 00000000 00:00 0 \n"  // begins like one, but nothing follows
      "7f0020001000-7f0020022000 rw-p 00000000 00:00 0 \n"  // begins elsewhere
      "7f0020022000-7f0024000000 ---p 00000000 00:00 0 \n"
      "7f0030000000-7f0030021000 rw-p 00000000 08:01 77  /data/file [heap] of ours\n"
      "7f0040000000-7f0040021000 rw-p 00000000 00:00 0  [anon: glibc: malloc arena]\n"
      "7f0040021000-7f0044000000 ---p 00000000 00:00 0 \n"
      "7f004f800000-7f0050021000 rw-p 00000000 00:00 0 \n"  // joined to another mapping
      "7f0050021000-7f0054000000 ---p 00000000 00:00 0 \n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n");

  REQUIRE(areas.size() == 5);
  CHECK(areas[0].is_main);
  CHECK(areas[0].bytes() == 0x21000);
  CHECK(areas[0].resident_bytes == bundle::kNotCounted);  // there is no pagemap
  CHECK(areas[1].start == 0x7f0000000000);
  CHECK(areas[1].bytes() == 0x21000);
  CHECK(areas[2].bytes() == 64 * kMiB);
  CHECK(areas[3].start == 0x7f0040000000);
  CHECK(areas[4].start == 0x7f0050000000);
  CHECK(areas[4].bytes() == 0x21000);
}

TEST_CASE("lines longer than the buffer, and a file cut anywhere") {
  const std::string line = "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0  [heap]\n";
  const std::string path =
      "7f0000000000-7f0000021000 r--p 00000000 08:01 77  /" + std::string(20'000, 'x') + "\n";
  CHECK(areas_in(path + line).size() == 1);
  const std::string all = line + line + path + line;
  std::set<std::size_t> counts;
  for (std::size_t length = 0; length <= all.size(); length += 7)
    counts.insert(areas_in(all.substr(0, length)).size());
  CHECK(counts == std::set<std::size_t>{0, 1, 2});
  CHECK(areas_in(all).size() == 3);
}

TEST_CASE("the chunk of a block") {
  CHECK(findings::chunk_of(0x1010, 1).end - findings::chunk_of(0x1010, 1).start == 32);
  CHECK(findings::chunk_of(0x1010, 24).end - findings::chunk_of(0x1010, 24).start == 32);
  CHECK(findings::chunk_of(0x1010, 25).end - findings::chunk_of(0x1010, 25).start == 48);
  CHECK(findings::chunk_of(0x1010, 100).start == 0x1000);
  CHECK(findings::chunk_of(0, 100).start == 0);
  CHECK(findings::chunk_of(~std::uint64_t{0}, ~std::uint64_t{0}).end >
        findings::chunk_of(~std::uint64_t{0}, 1).start);
}

TEST_CASE("free runs between chunks, and their whole pages") {
  const std::vector<HeapArea> areas = {{0x10000, 0x20000, 0, true}, {0x40000, 0x42000, 0, false}};
  const findings::FreeRuns runs =
      findings::free_runs(areas,
                          {{0x14000, 0x14100},
                           {0x10000, 0x10020},
                           {0x10040, 0x12000},
                           {0x14080, 0x20000},   // overlaps: a forged block
                           {0x30000, 0x31000}},  // outside
                          kPageBytes);

  CHECK(runs.count == 3);
  CHECK(runs.bytes == 0x20 + 0x2000 + 0x2000);
  CHECK(runs.largest_bytes == 0x2000);
  CHECK(runs.page_bytes == 0x4000);
  REQUIRE(runs.sizes.size() == 9);
  CHECK(runs.sizes.front().from == 0x20);
  CHECK(runs.sizes.front().count == 1);
  CHECK(runs.sizes.back().count == 2);
  CHECK(runs.sizes.back().bytes == 0x4000);
}

TEST_CASE("an area without chunks is one run; without areas there is none") {
  CHECK(findings::free_runs({{0x10000, 0x20000, 0, true}}, {}, kPageBytes).bytes == 0x10000);
  CHECK(findings::free_runs({}, {{0x10000, 0x20000}}, kPageBytes).count == 0);
}

TEST_CASE("no remedy if little is free") {
  CHECK(rules({}).empty());
  CHECK(rules(heap(100 * kMiB, 90 * kMiB)).empty());
  CHECK(rules(heap(20 * kMiB, 1 * kMiB)).empty());
}

TEST_CASE("a heap with much free memory: trim") {
  findings::Fragmentation figures = heap(100 * kMiB, 50 * kMiB);
  CHECK(rules(figures) == Names{"free_heap"});

  figures.heap.runs.emplace();
  figures.heap.runs->bytes = 50 * kMiB;
  figures.heap.runs->page_bytes = 45 * kMiB;
  CHECK(rules(figures) == Names{"free_pages"});
  figures.heap.runs->page_bytes = 5 * kMiB;
  CHECK(rules(figures) == Names{"small_gaps"});
}

TEST_CASE("only free memory that is resident deserves a remedy") {
  findings::Fragmentation figures = heap(200 * kMiB, 100 * kMiB);
  figures.heap.areas->resident_bytes = 101 * kMiB;
  figures.heap.areas->free_resident_bytes = kMiB;
  CHECK(rules(figures).empty());
  figures.heap.areas->resident_bytes = 200 * kMiB;
  figures.heap.areas->free_resident_bytes = 100 * kMiB;
  CHECK(rules(figures) == Names{"free_heap"});
  figures.heap.runs = findings::FreeRuns{};
  figures.heap.runs->bytes = figures.heap.runs->page_bytes = 100 * kMiB;
  figures.heap.areas->resident_bytes = 140 * kMiB;
  figures.heap.areas->free_resident_bytes = 44 * kMiB;  // of its pages, 56 MiB were given back
  const auto remedies = findings::remedies_for(figures);
  REQUIRE(remedies.size() == 1);
  CHECK(remedies[0].text.starts_with("44.0 MiB are free in whole pages"));
}

TEST_CASE("many arenas: limit them, unless they are limited already") {
  findings::Fragmentation figures = heap(400 * kMiB, 50 * kMiB);
  figures.heap.areas->count = 17;
  figures.heap.areas->arenas_bytes = 300 * kMiB;
  CHECK(rules(figures) == Names{"many_arenas", "free_heap"});
  CHECK(findings::remedies_for(figures)[0].text.find("MALLOC_ARENA_MAX=2") != std::string::npos);
  figures.arena_max_set = true;
  CHECK(rules(figures) == Names{"free_heap"});
  figures.arena_max_set = false;
  figures.heap.areas->count = 3;
  CHECK(rules(figures) == Names{"free_heap"});
}

TEST_CASE("devices: PyTorch's cache with and without expandable segments, and pools") {
  findings::Fragmentation figures;
  recording::DeviceFigures& device = figures.devices.emplace_back();
  device.label = "cuda:0";
  device.torch = recording::DeviceFigures::Torch{400 * kMiB, 1000 * kMiB, {}};
  CHECK(rules(figures) == Names{"torch_expandable"});
  figures.expandable_segments = true;
  CHECK(rules(figures) == Names{"torch_cache"});
  device.torch->allocated_bytes = 900 * kMiB;
  CHECK(rules(figures).empty());

  device.torch.reset();
  device.pool_reserved_bytes = 1000 * kMiB;
  device.pool_used_bytes = 100 * kMiB;
  CHECK(rules(figures) == Names{"device_pool"});
  device.pool_used_bytes = 900 * kMiB;
  CHECK(rules(figures).empty());
}

TEST_CASE("huge pages that are mostly unused") {
  findings::Fragmentation figures;
  figures.heap.live_bytes = 100 * kMiB;
  figures.map.anonymous_bytes = 400 * kMiB;
  figures.map.huge_page_bytes = 300 * kMiB;
  CHECK(rules(figures) == Names{"huge_pages"});
  figures.map.huge_page_bytes = 100 * kMiB;
  CHECK(rules(figures).empty());
  figures.map.huge_page_bytes = 300 * kMiB;
  figures.heap.live_bytes = 350 * kMiB;
  CHECK(rules(figures).empty());
}
