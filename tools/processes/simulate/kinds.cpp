#include "tools/processes/simulate/kinds.h"

#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/processes/simulate/deaths.h"
#include "tools/processes/simulate/devices.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kRoom = 64 * kMiB;  // under a limit; what is allocated is never touched
constexpr std::size_t kStep = 8 * kMiB;

void* volatile g_kept;  // so that the compiler makes each request

void allocate_until_refused() {
  for (std::size_t held = 0; held < 4 * kRoom; held += kStep) {
    g_kept = std::malloc(kStep);
    if (g_kept == nullptr) return;
  }
}

// "VmSize", "VmData": of this process, now.
std::size_t bytes_in_use(const std::string& field) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::size_t kib = 0;
    std::istringstream{line.substr(field.size() + 1)} >> kib;
    return kib << 10;
  }
  return 0;
}

void allocate_below(decltype(RLIMIT_AS) resource, const std::string& field) {
  const rlim_t bytes = bytes_in_use(field) + kRoom;
  const rlimit limit{bytes, bytes};
  setrlimit(resource, &limit);
  allocate_until_refused();
}

void pass_address_space_limit() { allocate_below(RLIMIT_AS, "VmSize"); }
void pass_data_limit() { allocate_below(RLIMIT_DATA, "VmData"); }

void ask_for_too_much() { g_kept = std::malloc(std::size_t{1} << 46); }

// To find a multiple of so much, malloc looks for as much; the request itself is small.
void ask_for_no_address() { g_kept = memalign(std::size_t{1} << 47, kMiB); }

void ask_for_seven_mib() { g_kept = std::malloc(7 * kMiB); }

// A process may have as many tasks as its user has limit. That binds nobody who is root by name or
// by two of its capabilities; without these it may write its bundle as before.
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
  [[maybe_unused]] const int refused = pthread_create(&thread, nullptr, end_at_once, nullptr);
}

void fork_though_forbidden() {
  forbid_tasks();
  if (fork() == 0) _exit(0);
}

// The break cannot grow over a mapping in its way.
void block_the_break() {
  constexpr std::uintptr_t kPage = 4096;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  void* const above = reinterpret_cast<void*>((end + 16 * kPage) & ~(kPage - 1));
  g_kept = mmap(above, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  g_kept = sbrk(kMiB);
}

}  // namespace

const std::vector<SimulatedKind>& simulated_kinds() {
  using enum VerdictCode;
  static const std::vector<std::string> kQuiet = {"--warn", "0"};  // of the limit, before the end
  static const std::vector<SimulatedKind> kinds = {
      {soft_limit, "allocates beyond --limit 64M", {"--limit", "64M"}, allocate_until_refused},
      {address_space_limit, "allocates beyond RLIMIT_AS", {}, pass_address_space_limit},
      {data_limit, "allocates beyond RLIMIT_DATA", {}, pass_data_limit},
      {request_too_large, "asks malloc for 64 TiB", {}, ask_for_too_much},
      {allocation_failed, "asks for an alignment that no address has", {}, ask_for_no_address},
      {injected,
       "is refused 7 MiB by --fail",
       {"--fail", "malloc:min=7M,nth=1"},
       ask_for_seven_mib},
      {thread_creation_failed, "starts a thread beyond RLIMIT_NPROC", {}, start_forbidden_thread},
      {fork_failed, "forks beyond RLIMIT_NPROC", {}, fork_though_forbidden},
      {mapping_failed, "moves the break against a mapping", {}, block_the_break},
      {device_out_of_memory, "fills a GPU of 1 GiB (which is simulated, too)", {}, fill_device},
      {device_limit,
       "allocates beyond --limit-gpu 512M (on the same)",
       {"--limit-gpu", "512M"},
       fill_device},
      {device_fragmentation,
       "asks a pool for more than any free piece (on the same)",
       {},
       fragment_device},
      {null_dereference, "uses the NULL of a refused malloc", {}, use_null},
      {uncaught_bad_alloc, "catches no std::bad_alloc", {}, leave_bad_alloc_uncaught},
      {crash_after_refusal, "calls abort() after a refusal", {}, give_up_after_refusal},
      {shared_memory_full, "fills a /dev/shm of 1 MiB (needs a mount)", {}, fill_shared_memory},
      {near_limit,
       "is at 97 % of a cgroup's limit",
       {"--warn", "95"},
       stay_near_limit,
       StagedCgroup{1024, 994}},
      {cgroup_oom_kill, "SIGKILL, and the kernel says that it was for the cgroup", kQuiet,
       be_killed_in_cgroup, StagedCgroup{1024, 1020}},
      {system_oom_kill, "SIGKILL, and the kernel says that it was for the machine", kQuiet,
       be_killed_by_machine, StagedCgroup{}},
      {killed_near_limit, "SIGKILL at 95 % of a cgroup's limit", kQuiet, be_killed,
       StagedCgroup{1024, 974}},
      {terminated_under_pressure, "SIGTERM at 95 % of a cgroup's limit", kQuiet, be_terminated,
       StagedCgroup{1024, 974}},
      {killed_externally, "SIGKILL, far from every limit", {}, be_killed, StagedCgroup{1024, 64}},
      {crashed, "SIGSEGV without a refusal", {}, use_wild_pointer},
      {child_killed, "exits with 1 when the kernel has killed its worker", kQuiet, lose_a_worker,
       StagedCgroup{1024, 1020}},
  };
  return kinds;
}

}  // namespace oomrec::tools::processes
