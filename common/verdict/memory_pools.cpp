// Limits on memory that is set aside: locked memory, and pools of huge pages.
#include <cerrno>

#include "common/verdict/ceiling.h"

namespace oomrec::verdict {
namespace {

using session::Failure;
using session::MemoryPools;

// mlockall() locks the whole address space: a limit below that fails it. EPERM: the limit is 0.
Ceiling locked_memory(const Failure& failure, std::uint64_t page_bytes) noexcept {
  const MemoryPools& pools = failure.pools;
  const bool all = static_cast<Api>(failure.api) == Api::mlockall;
  const std::uint64_t used = all ? failure.vm_bytes : pools.locked_bytes;
  const std::uint64_t request = all ? 0 : rounded_up(failure.bytes, page_bytes);
  return {LimitKind::memlock,
          "the limit of locked memory (RLIMIT_MEMLOCK)",
          all ? "address space" : "locked",
          pools.locked_limit_bytes,
          used,
          request,
          failure.error == EPERM || exceeded(pools.locked_limit_bytes, used, request)};
}

}  // namespace

void fill_in(PoolCeilings& out, const Failure& failure, std::uint64_t page_bytes) noexcept {
  const MemoryPools& pools = failure.pools;
  const std::uint64_t page = pools.huge_page_bytes;
  const std::uint64_t request = page == 0 ? 0 : rounded_up(failure.bytes, page);
  text::Text pool{out.pool_name}, cgroup{out.cgroup_name};
  pool.add("the machine's pool of huge pages of ").size(page);
  cgroup.add("the cgroup's limit of huge pages of ").size(page).add(" (hugetlb)");
  out.ceilings[0] = locked_memory(failure, page_bytes);
  out.ceilings[1] = {LimitKind::hugetlb,
                     out.cgroup_name,
                     "reserved",
                     pools.huge_cgroup_limit_bytes,
                     pools.huge_cgroup_bytes,
                     request,
                     exceeded(pools.huge_cgroup_limit_bytes, pools.huge_cgroup_bytes, request)};
  // A machine usually has no such pages at all.
  out.ceilings[2] = {LimitKind::hugetlb,
                     out.pool_name,
                     "in use or reserved",
                     pools.huge_total_bytes,
                     pools.huge_used_bytes,
                     request,
                     page != 0 && add(pools.huge_used_bytes, request) > pools.huge_total_bytes};
}

}  // namespace oomrec::verdict
