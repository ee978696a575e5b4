// The verdict on a failed request. The first explanation wins: a limit on bytes that live + request
// exceeds; a request larger than RAM and swap; a limit on tasks, mappings, committed or locked
// memory, or a pool of huge pages; else only the failure itself is known. For a thread, process or
// library the code names what could not be created, whatever the limit.
#include <cerrno>

#include "common/text/device_text.h"
#include "common/text/frames.h"
#include "common/text/text.h"
#include "common/verdict/ceiling.h"

namespace oomrec::verdict {
namespace {

using session::Failure;
using session::kUnlimited;

// An allocator without free memory asks the system for a larger piece, even for a small block. A
// limit that leaves less than this is why the block failed.
constexpr std::uint64_t kAllocatorPieceBytes = std::uint64_t{1} << 20;

// The bytes that the kernel had to map for this request.
std::uint64_t mapped_bytes(const Failure& failure, std::uint64_t page_bytes) noexcept {
  if (static_cast<Space>(failure.space) == Space::heap && failure.bytes < kAllocatorPieceBytes)
    return kAllocatorPieceBytes;
  return rounded_up(failure.bytes, page_bytes);
}

// The recorder's part of RLIMIT_AS, if --limit-as has set the limit.
std::uint64_t for_recorder(const session::View& view, std::uint64_t rlimit_as_bytes) noexcept {
  const session::Header& header = view.header();
  const bool by_us =
      header.limit_as_bytes == rlimit_as_bytes && header.limit_as_own_bytes < header.limit_as_bytes;
  return by_us ? header.limit_as_own_bytes : 0;
}

void explain_size(text::Text& summary, const Failure& failure) noexcept {
  const std::uint64_t memory = add(failure.ram_bytes, failure.swap_bytes);
  if (failure.bytes >= kAddressSpaceBytes) {
    summary.add("no address space is that large");
  } else {
    summary.add("RAM and swap together are ").size(memory);
  }
}

// Nothing that can be read explains it. Free memory on the machine does not exclude a shortage
// elsewhere, and is no reason to name one.
void explain_failure(text::Text& summary, const Failure& failure) noexcept {
  const std::string_view error = text::error_name(failure.error);
  summary.add("no limit that can be read explains it (");
  summary.add(error.empty() ? "unknown error" : error);
  if (failure.rss_bytes != 0) summary.add(", resident ").size(failure.rss_bytes);
  if (failure.pools.available_bytes != 0)
    summary.add("; ").size(failure.pools.available_bytes).add(" were available on the machine");
  summary.add(')');
}

bool is_too_large(const Failure& failure) noexcept {
  return failure.bytes >= kAddressSpaceBytes ||
         (failure.ram_bytes != 0 && failure.bytes > add(failure.ram_bytes, failure.swap_bytes));
}

bool has(const Failure& failure, Traits any) noexcept {
  return function_of(static_cast<Api>(failure.api)).has(any);
}

// The code that names what was requested, where that says more than the limit; otherwise
// `otherwise`.
VerdictCode code_of(const Failure& failure, VerdictCode otherwise) noexcept {
  if (has(failure, kStartsThread)) return VerdictCode::thread_creation_failed;
  if (has(failure, kStartsProcess)) return VerdictCode::fork_failed;
  if (has(failure, kLoads)) return VerdictCode::mapping_failed;
  if (has(failure, kLocks)) return VerdictCode::memory_lock_failed;
  return otherwise;
}

// The code of a failure that no limit on bytes explains.
VerdictCode code_without_limit(const Failure& failure) noexcept {
  return static_cast<Space>(failure.space) == Space::map ? VerdictCode::mapping_failed
                                                         : VerdictCode::allocation_failed;
}

VerdictCode code_of_ceiling(const Failure& failure, LimitKind kind) noexcept {
  switch (kind) {
    case LimitKind::soft:
      return VerdictCode::soft_limit;
    case LimitKind::rlimit_data:
      return VerdictCode::data_limit;
    case LimitKind::rlimit_as:
      return VerdictCode::address_space_limit;
    case LimitKind::memlock:
      return VerdictCode::memory_lock_failed;
    default:
      return code_without_limit(failure);
  }
}

void explain_ceiling(Verdict& verdict, text::Text& summary, const Failure& failure,
                     const Ceiling& hit) noexcept {
  verdict.code = code_of(failure, code_of_ceiling(failure, hit.kind));
  verdict.certainty = hit.hit           ? Certainty::proven
                      : hit.is_unread() ? Certainty::possible
                                        : Certainty::likely;
  verdict.limit = {hit.kind, hit.limit, hit.used};
  const bool of_bytes = !is_count_limit(hit.kind);
  const bool explains = hit.hit || (of_bytes && failure.bytes > hit.limit);
  const LimitWords words = !explains  ? LimitWords{"", " is the only one that explains it ("}
                           : of_bytes ? limit_words(hit.limit, hit.used, failure.bytes)
                                      : LimitWords{"", " is reached ("};
  summary.add(words.before).add(hit.name).add(" of ");
  hit.add_figure(summary, hit.limit - hit.for_recorder);
  if (hit.for_recorder != 0) summary.add(" plus ").size(hit.for_recorder).add(" for the recorder");
  summary.add(words.after);
  if (hit.is_unread()) return void(summary.add("what is in use could not be read)"));
  summary.add(hit.measure).add(' ');
  hit.add_figure(summary, hit.used);
  summary.add(')');
}

// EAGAIN: a limit on tasks. RLIMIT_NPROC counts all tasks of the user, but only those of this
// process are known. So it explains the failure if no other limit was reached.
void explain_tasks(Verdict& verdict, text::Text& summary, const Failure& failure) noexcept {
  const session::CountedLimits& at = failure.counted;
  const Ceiling ceilings[] = {
      counted(LimitKind::pids, "the cgroup's limit of tasks (pids.max)", "tasks",
              at.cgroup_tasks_limit, at.cgroup_tasks, 1),
      counted(LimitKind::threads_max, "the machine's limit of tasks (kernel.threads-max)",
              "the machine's tasks", at.threads_max, at.machine_tasks, 1),
      counted(LimitKind::rlimit_nproc, "the user's limit of tasks (RLIMIT_NPROC)",
              "tasks of this process alone", at.own_tasks_limit, at.own_tasks, 1),
      counted(LimitKind::pid_max, "the machine's limit of process ids (kernel.pid_max less 300)",
              "the machine's tasks", at.pid_max, at.machine_tasks, 1),
  };
  const Ceiling* hit = first_hit(verdict, ceilings);
  if (hit == nullptr && ceilings[2].in_force()) hit = &ceilings[2];
  if (hit != nullptr) return explain_ceiling(verdict, summary, failure, *hit);
  verdict.code = code_of(failure, code_without_limit(failure));
  explain_failure(summary, failure);
}

// ENOMEM without a limit on bytes that was reached.
void explain_lack(Verdict& verdict, text::Text& summary, const Failure& failure,
                  std::uint64_t page_bytes, const Ceiling& address_space) noexcept {
  const session::CountedLimits& at = failure.counted;
  const Ceiling ceilings[] = {
      counted(LimitKind::commit,
              "the machine's CommitLimit (vm.overcommit_memory 2), less the kernel's reserves,",
              "Committed_AS", at.commit_limit_bytes, at.committed_bytes,
              mapped_bytes(failure, page_bytes)),
      counted(LimitKind::max_map_count, "the limit of mappings (vm.max_map_count)", "mappings",
              at.max_mappings, at.mappings, 1),
  };
  PoolCeilings pools;
  fill_in(pools, failure, page_bytes);
  const Ceiling* const by_pool = first_hit(verdict, pools.ceilings);
  const Ceiling* hit = first_hit(verdict, ceilings);
  if (by_pool != nullptr) hit = by_pool;
  // Only the loader knows the size of a library that did not fit.
  const bool size_unknown = has(failure, kLoads);
  const bool is_possible = size_unknown || address_space.is_unread();
  if (hit == nullptr && is_possible && address_space.in_force()) hit = &address_space;
  if (hit != nullptr) return explain_ceiling(verdict, summary, failure, *hit);
  verdict.code = code_of(failure, code_without_limit(failure));
  explain_failure(summary, failure);
}

// The request failed for certain. That the program ended because of it is only inferred.
void lower_certainty(Verdict& verdict) noexcept {
  verdict.certainty =
      verdict.limit.kind == LimitKind::none ? Certainty::possible : Certainty::likely;
  add_line(verdict, [](text::Text& line) {
    line.add("a program may do without this request; this one got nothing instead, and ended");
  });
}

}  // namespace

void add_request(text::Text& summary, const session::View& view, const Failure& failure) noexcept {
  char name[80];
  summary.add(text::requester_of(view, failure.node, name));
  const std::string_view api = name_of(static_cast<Api>(failure.api));
  if (failure.bytes == 0) {
    summary.add(" called ").add(api);
  } else if (failure.bytes == kUnlimited) {
    summary.add(" asked ").add(api).add(" for more than 16 EiB");
  } else {
    summary.add(" asked ").add(api).add(" for ").size(failure.bytes);
  }
  session::Device device;
  if (text::read_device(view, failure.device.device, device)) {
    summary.add(" on ");
    text::add_device(summary, device);
  }
}

void begin_failure(text::Text& summary, const session::View& view,
                   const Failure& failure) noexcept {
  add_request(summary, view, failure);
  summary.add(" and was refused: ");
}

void add_background(Verdict& verdict, const Failure& failure) noexcept {
  if (failure.ram_bytes != 0 && failure.rss_bytes != 0) {
    add_line(verdict, [&](text::Text& text) {
      text.add("resident ").size(failure.rss_bytes).add(" of ").size(failure.ram_bytes);
      text.add(" RAM; swap ").size(failure.swap_bytes);
    });
  }
  if (failure.cgroup_limit_bytes != 0 && failure.cgroup_limit_bytes != kUnlimited) {
    add_line(verdict, [&](text::Text& text) {
      text.add("cgroup working set ").size(failure.cgroup_used_bytes);
      text.add(" of ").size(failure.cgroup_limit_bytes);
    });
  }
}

void explain_injection(Verdict& verdict, text::Text& summary, const session::View& view,
                       const Failure& failure) noexcept {
  const std::string_view rule = view.string(failure.rule);
  verdict.code = VerdictCode::injected;
  summary.add("--fail injected the failure");
  add_line(verdict, [&](text::Text& line) {
    line.add("the rule ")
        .add(rule)
        .add(" of --fail (OOMREC_FAIL) refused it; memory was not short");
  });
}

void explain_failed_request(Verdict& verdict, const session::View& view,
                            const Failure& failure) noexcept {
  if (is_device_space(static_cast<Space>(failure.space)))
    return explain_device_failure(verdict, view, failure);
  const std::uint64_t page_bytes = session::page_bytes_of(view.header());
  const std::uint64_t mapped = mapped_bytes(failure, page_bytes);
  const bool failed_by_recorder = (failure.flags & session::kFailureByRecorder) != 0;
  const std::uint64_t mapped_newly = (failure.flags & session::kFailureCommit) != 0 ? 0 : mapped;
  const Ceiling ceilings[] = {
      {LimitKind::soft, "the soft limit", "live", failure.soft_limit_bytes, failure.live_bytes,
       failure.bytes,
       failed_by_recorder || exceeded(failure.soft_limit_bytes, failure.live_bytes, failure.bytes)},
      {LimitKind::rlimit_data, "the data limit (RLIMIT_DATA)", "data", failure.rlimit_data_bytes,
       failure.data_bytes, mapped, exceeded(failure.rlimit_data_bytes, failure.data_bytes, mapped)},
      {LimitKind::rlimit_as, "the address space limit (RLIMIT_AS)", "in use",
       failure.rlimit_as_bytes, failure.vm_bytes, mapped_newly,
       exceeded(failure.rlimit_as_bytes, failure.vm_bytes, mapped_newly),
       for_recorder(view, failure.rlimit_as_bytes)},
  };

  text::Text summary{verdict.summary};
  begin_failure(summary, view, failure);
  const bool lock = has(failure, kLocks);  // takes no new memory
  if ((failure.flags & session::kFailureInjected) != 0) {
    explain_injection(verdict, summary, view, failure);
  } else if (failure.error == EAGAIN && has(failure, kStartsThread | kStartsProcess)) {
    explain_tasks(verdict, summary, failure);
  } else if (const Ceiling* const hit = lock ? nullptr : first_hit(verdict, ceilings)) {
    explain_ceiling(verdict, summary, failure, *hit);
  } else if (!lock && is_too_large(failure)) {
    verdict.code = code_of(failure, VerdictCode::request_too_large);
    explain_size(summary, failure);
  } else {
    explain_lack(verdict, summary, failure, page_bytes, ceilings[2]);
  }
  if ((failure.flags & session::kFailureUnserved) != 0) lower_certainty(verdict);
  add_background(verdict, failure);
}

}  // namespace oomrec::verdict
