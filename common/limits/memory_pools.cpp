#include "common/limits/memory_pools.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include <string_view>

#include "common/limits/cgroup.h"
#include "common/limits/counted_limits.h"
#include "common/limits/process_files.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "common/system/units.h"

namespace oomrec::limit {
namespace {

using session::kUnlimited;
using session::MemoryPools;
using system::Text;

// Each has a buffer, so none may be inlined into another: a hook uses little stack.

std::uint64_t kib_in(std::string_view text, std::string_view name) noexcept {
  return system::number_in(system::field(text, name)) * 1024;
}

// MemAvailable is among the first lines, Hugepagesize among the last ones, which may lie beyond
// what fits in the buffer at once.
[[gnu::noinline]] std::uint64_t read_meminfo(MemoryPools& out) noexcept {
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/meminfo";
  const system::File file = system::File::open(path, O_RDONLY);
  if (!file.is_open()) return 0;
  constexpr std::size_t kFirstLines = 512;
  std::uint64_t huge_page_bytes = 0;
  for (std::size_t capacity = kFirstLines; huge_page_bytes == 0; capacity = sizeof(text)) {
    const long bytes = file.read(text, capacity);
    if (bytes <= 0) break;
    const std::string_view lines{text, static_cast<std::size_t>(bytes)};
    if (capacity == kFirstLines) out.available_bytes = kib_in(lines, "MemAvailable:");
    huge_page_bytes = kib_in(lines, "Hugepagesize:");
  }
  return huge_page_bytes;
}

// setrlimit(2), RLIMIT_MEMLOCK: not enforced for CAP_IPC_LOCK.
[[gnu::noinline]] void read_locked(MemoryPools& out) noexcept {
  char path[kProcessPathBytes], text[1408];
  Text(path) << system::g_roots.proc << "/self/status";
  if (system::read_file(path, text, sizeof(text)) <= 0) return;
  out.locked_bytes = kib_in(text, "VmLck:");
  constexpr std::uint64_t kExempting = std::uint64_t{1} << CAP_IPC_LOCK;
  const bool exempt = (effective_capabilities(text) & kExempting) != 0 && is_in_initial_namespace();
  rlimit64 limits{};
  if (system::call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, nullptr, &limits) != 0) return;
  const bool none = exempt || limits.rlim_cur == RLIM64_INFINITY;
  out.locked_limit_bytes = none ? kUnlimited : limits.rlim_cur;
}

[[gnu::noinline]] bool read_pool_pages(std::uint64_t page_bytes, const char* name,
                                       std::uint64_t& pages) noexcept {
  char path[kProcessPathBytes], text[64];
  Text file(path);
  file << system::g_roots.sys << "/kernel/mm/hugepages/hugepages-";
  file.number(page_bytes / 1024) << "kB/" << name;
  if (system::read_file(path, text, sizeof(text)) <= 0) return false;
  pages = system::number_in(text);
  return true;
}

void read_pool(MemoryPools& out) noexcept {
  std::uint64_t total = 0, free = 0, reserved = 0;
  if (!read_pool_pages(out.huge_page_bytes, "nr_hugepages", total) ||
      !read_pool_pages(out.huge_page_bytes, "free_hugepages", free) ||
      !read_pool_pages(out.huge_page_bytes, "resv_hugepages", reserved))
    return;
  const std::uint64_t available = free > reserved ? free - reserved : 0;
  out.huge_total_bytes = total * out.huge_page_bytes;
  out.huge_used_bytes = (total > available ? total - available : 0) * out.huge_page_bytes;
}

// "/hugetlb.2MB.rsvd.max": the kernel names sizes by their largest unit.
void name_file(Text name, std::uint64_t page_bytes, const char* suffix) noexcept {
  name << "/hugetlb.";
  if (page_bytes >= kGiB) {
    name.number(page_bytes / kGiB) << "GB";
  } else if (page_bytes >= kMiB) {
    name.number(page_bytes / kMiB) << "MB";
  } else {
    name.number(page_bytes / 1024) << "KB";
  }
  name << suffix;
}

// Of its own cgroup and the ancestors, the one with the lowest limit on reservations. A limit on
// pages in use does not fail a request: the kernel raises SIGBUS when a page is touched.
[[gnu::noinline]] void read_pool_of_cgroup(InHook hook, MemoryPools& out) noexcept {
  char used_file[48], limit_file[48];
  name_file(Text(used_file), out.huge_page_bytes, ".rsvd.usage_in_bytes");
  name_file(Text(limit_file), out.huge_page_bytes, ".rsvd.current");
  CgroupPath cgroup{hook, "hugetlb", used_file, limit_file};
  if (!cgroup.is_found()) return;
  if (!cgroup.is_v1()) name_file(Text(used_file), out.huge_page_bytes, ".rsvd.current");
  name_file(Text(limit_file), out.huge_page_bytes,
            cgroup.is_v1() ? ".rsvd.limit_in_bytes" : ".rsvd.max");
  out.huge_cgroup_limit_bytes = kUnlimited;
  do {
    std::uint64_t limit = 0, used = 0;
    if (!cgroup.read(limit_file, limit) || !cgroup.read(used_file, used)) continue;
    if (limit >= out.huge_cgroup_limit_bytes) continue;
    out.huge_cgroup_limit_bytes = limit;
    out.huge_cgroup_bytes = used;
  } while (cgroup.move_to_parent());
}

}  // namespace

void read_memory_pools(InHook hook, const PoolsNeeded& needed, MemoryPools& out) noexcept {
  const std::uint64_t default_page_bytes = read_meminfo(out);
  out.locked_limit_bytes = kUnlimited;
  if (needed.locked) read_locked(out);
  if (!needed.huge_pages) return;
  out.huge_page_bytes = needed.huge_page_bytes != 0 ? needed.huge_page_bytes : default_page_bytes;
  if (out.huge_page_bytes == 0) return;
  read_pool(out);
  read_pool_of_cgroup(hook, out);
}

}  // namespace oomrec::limit
