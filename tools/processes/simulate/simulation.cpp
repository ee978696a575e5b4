#include "tools/processes/simulate/simulation.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "common/machine/page.h"
#include "common/system/units.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/processes/launch/options.h"
#include "tools/processes/simulate/deaths.h"
#include "tools/processes/simulate/scenario.h"
#include "tools/processes/supervise/self.h"

namespace oomrec::tools::processes {
namespace {

// Limits of 0 keep retention from deleting bundles of real deaths for this one.
std::vector<std::string> run_options(const SimulatedKind& kind, const std::string& dump_dir) {
  std::vector<std::string> options = {"--mode",      "sampled", "--quiet",        "--children", "1",
                                      "--max-dumps", "0",       "--max-total-mb", "0"};
  if (!dump_dir.empty()) options.insert(options.end(), {"--dump-dir", dump_dir});
  options.insert(options.end(), kind.options.begin(), kind.options.end());
  return options;
}

// Empty variables are unset to the library: only the options that the kind needs are in force, and
// those that say where to write and which arguments to record.
Settings environment_of(const std::optional<Scenario>& scenario) {
  Settings environment = {{"OOMREC_SIMULATED", "1"}};
  for (const OptionRow& row : option_rows())
    if ((row.traits & kOwnRuns) == 0) environment.emplace_back(row.variable, "");
  if (!scenario) return environment;
  const Settings files = scenario->environment();
  environment.insert(environment.end(), files.begin(), files.end());
  return environment;
}

}  // namespace

std::string simulate(const SimulatedKind& kind, const std::vector<std::string>& child_words,
                     const std::string& dump_dir) {
  std::optional<Scenario> scenario;
  if (kind.cgroup) scenario.emplace(*kind.cgroup);
  const SelfEnded self = run_self({.options = run_options(kind, dump_dir),
                                   .words = child_words,
                                   .environment = environment_of(scenario),
                                   .kernel_log = scenario ? scenario->kernel_log() : ""});
  const std::vector<bundles::BundleSummary> bundles = bundles::bundles_in(self.dump_directories);
  const auto found = std::ranges::find_if(bundles, [&](const bundles::BundleSummary& bundle) {
    return bundle.pid == static_cast<std::uint64_t>(self.ended.pid) &&
           bundle.verdict == name_of(kind.code);
  });
  if (found != bundles.end()) return found->path.string();
  throw Error{Exit::nothing_found,
              fmt::format("{} could not be reproduced here: no bundle has this verdict",
                          name_of(kind.code)),
              "Limits, a sandbox or another preloaded library may be in the way; `oomrec info` "
              "lists those in force."};
}

namespace {

constexpr std::size_t kHeadroom = 64 * kMiB;  // below a limit; its pages are never touched
constexpr std::size_t kStep = 8 * kMiB;

void* volatile g_requested;  // keeps the compiler from removing the request

void allocate_until_failure() {
  for (std::size_t held = 0; held < 4 * kHeadroom; held += kStep) {
    g_requested = std::malloc(kStep);
    if (g_requested == nullptr) return;
  }
}

// `used`: a field of /proc/PID/status.
void allocate_below(decltype(RLIMIT_AS) resource, std::string_view used) {
  const rlim_t bytes = status_bytes(getpid(), used) + kHeadroom;
  const rlimit limit{bytes, bytes};
  setrlimit(resource, &limit);
  allocate_until_failure();
}

void pass_address_space_limit() { allocate_below(RLIMIT_AS, "VmSize"); }
void pass_data_limit() { allocate_below(RLIMIT_DATA, "VmData"); }

void request_too_much() { g_requested = std::malloc(std::size_t{1} << 46); }

// malloc needs as much address space as the alignment; the request itself is small.
void request_impossible_alignment() {
  volatile std::size_t alignment = std::size_t{1} << 47;  // as a constant, clang rejects it
  g_requested = memalign(alignment, kMiB);
}

void request_seven_mib() { g_requested = std::malloc(7 * kMiB); }

// RLIMIT_NPROC does not apply to root, nor to a process with one of two capabilities: gives up
// both, but keeps what the bundle's writer needs.
void forbid_tasks() {
  if (geteuid() == 0) {
    constexpr long kNobody = 65534, kUnchanged = -1;
    syscall(SYS_setresuid, kNobody, kUnchanged, kUnchanged);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    syscall(SYS_capget, &header, data);
    data[0].effective &= ~(1U << CAP_SYS_ADMIN | 1U << CAP_SYS_RESOURCE);
    syscall(SYS_capset, &header, data);
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NPROC, &none);
}

void start_forbidden_thread() {
  forbid_tasks();
  pthread_t thread;
  const auto end_at_once = [](void* nothing) { return nothing; };
  [[maybe_unused]] const int error = pthread_create(&thread, nullptr, end_at_once, nullptr);
}

void fork_though_forbidden() {
  forbid_tasks();
  if (fork() == 0) _exit(0);
}

// The break cannot grow past a mapping.
void block_the_break() {
  const std::uint64_t page = machine::page_bytes();
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  void* const above = reinterpret_cast<void*>(machine::page_down(end + 16 * page));
  g_requested =
      mmap(above, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  g_requested = sbrk(kMiB);
}

}  // namespace

const std::vector<SimulatedKind>& simulated_kinds() {
  using enum VerdictCode;
  static const std::vector<std::string> kQuiet = {"--warn", "0"};  // no bundle near the limit
  static const std::vector<SimulatedKind> kinds = {
      {soft_limit, "allocates beyond --limit 64M", {"--limit", "64M"}, allocate_until_failure},
      {address_space_limit, "allocates beyond RLIMIT_AS", {}, pass_address_space_limit},
      {data_limit, "allocates beyond RLIMIT_DATA", {}, pass_data_limit},
      {request_too_large, "requests 64 TiB from malloc", {}, request_too_much},
      {allocation_failed,
       "requests an alignment that no address has",
       {},
       request_impossible_alignment},
      {injected,
       "requests 7 MiB, which --fail refuses",
       {"--fail", "malloc:min=7M,nth=1"},
       request_seven_mib},
      {thread_creation_failed, "starts a thread beyond RLIMIT_NPROC", {}, start_forbidden_thread},
      {fork_failed, "forks beyond RLIMIT_NPROC", {}, fork_though_forbidden},
      {mapping_failed, "moves the break against a mapping", {}, block_the_break},
      {device_out_of_memory, "fills a GPU of 1 GiB (a simulated one)", {}, fill_device},
      {device_limit,
       "allocates beyond --limit-gpu 512M (on a simulated GPU)",
       {"--limit-gpu", "512M"},
       fill_device},
      {device_fragmentation,
       "requests more than any free piece of a pool (on a simulated GPU)",
       {},
       fragment_device},
      {null_dereference, "uses the NULL of a refused malloc", {}, use_null},
      {uncaught_bad_alloc, "leaves a std::bad_alloc uncaught", {}, leave_bad_alloc_uncaught},
      {crash_after_refusal, "calls abort() after a failed allocation", {}, abort_after_failure},
      {shared_memory_full, "fills a /dev/shm of 1 MiB (needs a mount)", {}, fill_shared_memory},
      {near_limit,
       "is at 97 % of a cgroup's limit",
       {"--warn", "95"},
       stay_near_limit,
       ScenarioCgroup{1024, 994}},
      {cgroup_oom_kill, "SIGKILL, and the kernel logs an OOM kill in the cgroup", kQuiet,
       be_killed_in_cgroup, ScenarioCgroup{1024, 1020}},
      {system_oom_kill, "SIGKILL, and the kernel logs an OOM kill of the machine", kQuiet,
       be_killed_by_machine, ScenarioCgroup{}},
      {killed_near_limit, "SIGKILL at 95 % of a cgroup's limit", kQuiet, be_killed,
       ScenarioCgroup{1024, 974}},
      {terminated_under_pressure, "SIGTERM at 95 % of a cgroup's limit", kQuiet, be_terminated,
       ScenarioCgroup{1024, 974}},
      {killed_externally, "SIGKILL, far from every limit", {}, be_killed, ScenarioCgroup{1024, 64}},
      {crashed, "SIGSEGV without a failed allocation", {}, use_wild_pointer},
      {child_killed, "exits with 1 after the kernel has killed its worker", kQuiet, lose_a_worker,
       ScenarioCgroup{1024, 1020}},
  };
  return kinds;
}

const SimulatedKind& simulated_kind(const std::string& word) {
  std::vector<std::string_view> names;
  for (const SimulatedKind& kind : simulated_kinds()) {
    if (name_of(kind.code) == word) return kind;
    names.push_back(name_of(kind.code));
  }
  const std::string_view meant = nearest(word, names);
  throw Error{
      Exit::bad_input,
      word.empty() ? "no kind was given" : fmt::format("'{}' cannot be simulated", printable(word)),
      meant.empty() ? std::string{"`oomrec simulate --list` lists the kinds."}
                    : fmt::format("Did you mean `oomrec simulate {}`?", meant)};
}

}  // namespace oomrec::tools::processes
