// The action for each verdict whose limit is not a number to raise: the machine, a runtime's own
// limit, the program itself.
#include <fmt/format.h>

#include <algorithm>

#include "common/verdict/verdict.h"
#include "tools/base/text.h"
#include "tools/findings/advice/heap_limit.h"
#include "tools/findings/advice/limit_rules.h"

namespace oomrec::tools::findings {
namespace {

std::string request_text(const AdviceFacts& facts) {
  if (facts.request_bytes >= verdict::kAddressSpaceBytes)  // it is computed wrongly
    return fmt::format("No machine can serve {} at once: check where the size comes from.",
                       size_text(facts.request_bytes));
  return machine_text(facts, rounded(with_quarter(facts.request_bytes))) +
         ", if the size is meant. Check first where the size comes from.";
}

std::string machine_full_text(const AdviceFacts& facts) {
  const std::uint64_t bytes =
      rounded(std::max(with_quarter(needed_bytes(facts)), with_quarter(facts.limit.ram_bytes)));
  return fmt::format(
             "The machine's memory was full, of which this process used at least {}. Stop other "
             "programs, or use a machine with about {}; `oomrec run --cgroup {}` keeps it from "
             "taking others down with it.",
             size_text(needed_bytes(facts)), size_text(bytes),
             value_text(rounded(with_quarter(needed_bytes(facts))))) +
         trend_text(facts);
}

std::string kernel_kill_text(const AdviceFacts& facts) {
  switch (facts.kernel_line) {
    case session::KernelLine::cpuset:
    case session::KernelLine::policy:
      return "Memory nodes were full, not the machine: allow more of them (cpuset.mems, numactl), "
             "or let it hold less at a time." +
             trend_text(facts);
    case session::KernelLine::page_fault:
    case session::KernelLine::unscoped:
      return "What was full is not known. The kernel's report before the kill's line says it "
             "(dmesg).";
    default:
      return machine_full_text(facts);
  }
}

std::string unexplained_text(const AdviceFacts& facts) {
  if (!facts.limit.allocator_limit.empty()) {
    return fmt::format(
        "No limit of the system explains it, and {} in its environment limits the allocator: raise "
        "or unset that.",
        facts.limit.allocator_limit);
  }
  return "No limit that can be read explains it. Compare `ulimit -a`, `free -m` and "
         "`sysctl vm.overcommit_memory`, and ask for the memory in smaller pieces.";
}

std::string thread_text(const AdviceFacts&) {
  return "A thread needs address space for its stack: try smaller stacks (ulimit -s, "
         "threading.stack_size), or fewer threads or processes.";
}

std::string exception_text(const AdviceFacts&) {
  return "The program computed a size that it could not even ask for: print that size where the "
         "exception was raised.";
}

std::string runtime_text(const AdviceFacts& facts) {
  return raise_heap_text(facts) + trend_text(facts);
}

std::string user_killer_text(const AdviceFacts& facts) {
  return fmt::format(
             "A service ended it before the kernel would have. It used at least {}: give it a "
             "cgroup "
             "that has this much to itself (in a pod: memory requests), or change the service's "
             "thresholds (systemd-oomd: ManagedOOMPreference=avoid; earlyoom: --avoid; kubelet: "
             "evictionSoft and evictionHard).",
             size_text(needed_bytes(facts))) +
         trend_text(facts);
}

std::string parent_text(const AdviceFacts& facts) {
  return fmt::format(
             "Its parent ends workers that take too much memory. Raise the parent's limit for each "
             "worker to about {} (Dask: memory_limit, --memory-limit), run fewer workers, or let "
             "each work on less data at a time.",
             size_text(rounded(with_quarter(needed_bytes(facts))))) +
         trend_text(facts);
}

std::string pressure_text(const AdviceFacts& facts) {
  const std::uint64_t bytes =
      rounded(with_quarter(std::max(needed_bytes(facts), facts.limit.limit)));
  return fmt::format(
             "It waits for pages that the kernel had to evict: give it about {}, let it "
             "work on less data at a time, or run fewer such processes at once.",
             size_text(bytes)) +
         trend_text(facts);
}

std::string child_text(const AdviceFacts&) {
  return "The worker's own bundle says what it held and which limit it reached. Start with fewer "
         "workers or less data for each.";
}

std::string device_text(const AdviceFacts& facts) {
  if (facts.limit.limit == 0)
    return "Use smaller batches, or keep fewer tensors on the GPU between steps.";
  const std::uint64_t bytes = rounded(facts.limit.used + facts.request_bytes);
  return fmt::format(
      "It needs a GPU with about {}, smaller batches, or other programs off this "
      "GPU (nvidia-smi, rocm-smi).",
      size_text(bytes));
}

std::string pool_text(const AdviceFacts&) {
  return "Enough memory is free, in pieces that are too small: trim the pool, ask for smaller "
         "pieces, or for the large ones first.";
}

std::string unchecked_text(const AdviceFacts&) {
  return "The program went on after a request was refused: check the result of the call, and free "
         "something or end in good order.";
}

struct Action {
  verdict::Remedy remedy;
  ActionText text;
};

constexpr Action kActions[] = {
    {verdict::Remedy::smaller_request, request_text},
    {verdict::Remedy::compare_limits, unexplained_text},
    {verdict::Remedy::smaller_stacks, thread_text},
    {verdict::Remedy::print_size, exception_text},
    {verdict::Remedy::check_result, unchecked_text},
    {verdict::Remedy::larger_machine, machine_full_text},
    {verdict::Remedy::by_kernel_line, kernel_kill_text},
    {verdict::Remedy::less_at_a_time, pressure_text},
    {verdict::Remedy::change_service, user_killer_text},
    {verdict::Remedy::change_parent, parent_text},
    {verdict::Remedy::larger_heap, runtime_text},
    {verdict::Remedy::read_worker, child_text},
    {verdict::Remedy::smaller_batches, device_text},
    {verdict::Remedy::trim_pool, pool_text},
};

}  // namespace

ActionText action_for(VerdictCode code) {
  for (const Action& action : kActions)
    if (action.remedy == verdict::kind_of(code).remedy) return action.text;
  return nullptr;
}

}  // namespace oomrec::tools::findings
