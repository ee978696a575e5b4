// A cgroup's or the machine's memory by kind, as memory.stat and the kernel's log have it.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomrec::tools::deaths {

// Bytes; 0: not reported.
struct MemoryStatistics {
  std::uint64_t anonymous = 0;  // without shmem
  std::uint64_t file = 0;       // page cache, with shmem
  std::uint64_t shared = 0;     // shmem and tmpfs
  std::uint64_t slab = 0;
  std::uint64_t stacks = 0;
  std::uint64_t page_tables = 0;
  std::uint64_t sockets = 0;
  std::uint64_t other_kernel = 0;  // per-CPU memory, vmalloc
  std::uint64_t kernel = 0;        // all memory of the kernel but sockets, if it counts it

  std::uint64_t all_kernel() const;  // without slab, with sockets
};

// Reads memory.stat line by line, of either version of cgroups: "anon 123"; in version 1
// "cache 123" and, with all cgroups below, "total_cache 123".
class StatisticsReader {
 public:
  bool read(std::string_view line);  // false: it is not such a line

  // "Memory cgroup stats for /x: cache:0KB rss:63488KB …", in the kernel's log until 5.1: a line
  // for each cgroup below the full one, with its own pages.
  void read_old(std::string_view line);

  const MemoryStatistics& found() const { return found_; }

 private:
  MemoryStatistics found_;
  bool has_totals_ = false;
};

// "active_anon:13 inactive_anon:45 …": the block below "Mem-Info:" in the kernel's log, in pages.
class MachineStatisticsReader {
 public:
  void read(std::string_view line);

  MemoryStatistics found(std::uint64_t page_bytes) const;
  std::uint64_t ram_pages() const;
  std::uint64_t used_pages() const;

 private:
  MemoryStatistics found_pages_;
  std::uint64_t stack_bytes_ = 0;
  std::uint64_t pages_ = 0, reserved_pages_ = 0, free_pages_ = 0;
};

}  // namespace oomrec::tools::deaths
