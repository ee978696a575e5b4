#include "common/verdict/ceiling.h"

#include <cerrno>

namespace oomrec::verdict {
namespace {

void add_evidence(Verdict& verdict, const Ceiling& ceiling) noexcept {
  add_line(verdict, [&](text::Text& line) {
    if (ceiling.is_unread()) {
      if (ceiling.hit) {
        line.add("request ");
        ceiling.add_figure(line, ceiling.request);
        line.add(" > ");
      }
      line.add(ceiling.name).add(' ');
      ceiling.add_figure(line, ceiling.limit);
      return void(line.add("; what is in use could not be read"));
    }
    line.add(ceiling.measure).add(' ');
    ceiling.add_figure(line, ceiling.used);
    line.add(" + request ");
    ceiling.add_figure(line, ceiling.request);
    line.add(ceiling.hit ? " > " : " <= ").add(ceiling.name).add(' ');
    ceiling.add_figure(line, ceiling.limit);
  });
}

}  // namespace

Ceiling counted(LimitKind kind, std::string_view name, std::string_view measure,
                std::uint64_t limit, std::uint64_t used, std::uint64_t request) noexcept {
  // A limit of 0 is one: `ulimit -u 0`.
  const bool hit = used != 0 && limit != session::kUnlimited && add(used, request) > limit;
  return {kind, name, measure, used != 0 ? limit : session::kUnlimited, used, request, hit};
}

const Ceiling* first_hit(Verdict& verdict, std::span<const Ceiling> ceilings) noexcept {
  const Ceiling* hit = nullptr;
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.in_force() || ceiling.hit) add_evidence(verdict, ceiling);
    if (hit == nullptr && ceiling.hit) hit = &ceiling;
  }
  return hit;
}

// Limits on memory that is set aside: locked memory, and pools of huge pages.
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
