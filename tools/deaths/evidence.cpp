#include "tools/deaths/evidence.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/system/files.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {
namespace {

namespace fs = std::filesystem;
using session::Death;
using session::KernelLine;
using session::TableId;

bool is_this_host(const session::Header& header) {
  char host[sizeof header.host] = {};
  gethostname(host, sizeof host - 1);
  return std::strncmp(host, header.host, sizeof host - 1) == 0;
}

bool is_this_boot(const session::Header& header) {
  std::uint8_t boot[16];
  return !system::boot_id(boot) || std::memcmp(boot, header.boot_id, sizeof boot) == 0;
}

// The kernel's log has pids of the first namespace.
constexpr std::uint32_t kFirstPidNamespace = 0xEFFFFFFC;

std::uint64_t live_bytes(const session::View& view) {
  const std::int64_t live =
      view.totals(Space::heap).live_bytes + view.totals(Space::map).live_bytes;
  return live > 0 ? static_cast<std::uint64_t>(live) : 0;
}

// Names that its tasks had, and the one that it began with.
std::vector<std::string> names_of(const session::View& view) {
  std::vector<std::string> names{
      std::string{text::base_name(view.string(view.header().executable))}};
  session::Thread thread{};
  for (std::uint64_t i = 1; i < view.count(TableId::threads); ++i) {
    if (!view.read(TableId::threads, i, thread)) continue;
    names.emplace_back(thread.name, strnlen(thread.name, sizeof thread.name));
  }
  return names;
}

// Of its last sign of life.
std::uint64_t last_sign_realtime_ns(const session::View& view) {
  const session::Header& header = view.header();
  std::uint64_t last = std::max(
      {header.start_monotonic_ns, header.last_tick_ns.load(), header.health.time_ns.load()});
  session::Failure failure{};
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i)
    if (view.read(TableId::failures, i, failure)) last = std::max(last, failure.last_ns.load());
  return header.start_realtime_ns + (last - header.start_monotonic_ns);
}

Sought sought_in(const session::View& view, const LogClock& clock, bool this_boot) {
  const session::Header& header = view.header();
  Sought sought;
  sought.pid = static_cast<std::uint64_t>(header.pid);
  const std::int32_t helper = header.helper_pid;
  sought.helper_pid = helper > 0 ? static_cast<std::uint64_t>(helper) : 0;
  sought.pids_agree = header.pid_namespace == kFirstPidNamespace;
  sought.names = names_of(view);
  sought.cgroup = view.string(header.cgroup_path);
  const std::uint64_t end = this_boot ? clock.now_realtime_ns : clock.boot_realtime_ns;
  sought.from_realtime_ns = last_sign_realtime_ns(view) - clock.error_ns();
  sought.to_realtime_ns = end + (this_boot ? clock.error_ns() : 0);
  sought.rss_bytes = header.health.rss_bytes;
  sought.most_bytes = live_bytes(view);
  return sought;
}

void read_log(Death& death, const session::View& view, bool this_boot) {
  const LogClock clock = LogClock::now();
  const Sought sought = sought_in(view, clock, this_boot);
  const KernelLog log = read_kernel_log(clock, this_boot);
  const std::vector<KernelKill> kills = kills_in(log);
  const bool can_tell = sought.pids_agree || sought.cgroup.size() > 1;
  const bool reaches_back = log.reaches_back_to(sought.from_realtime_ns);
  if (can_tell && reaches_back) death.flags |= session::kDeathLogRead;
  if (const KernelKill* const kill = kill_of(kills, sought)) {
    const bool counted = death.cgroup_oom_kills_after > death.cgroup_oom_kills_before;
    const KernelLine guess = counted ? KernelLine::cgroup : KernelLine::system;
    death.kernel_line_kind =
        static_cast<std::uint32_t>(kill->kind != KernelLine::none ? kill->kind : guess);
    system::Text{death.kernel_line} << kill->line;
    death.realtime_ns = std::min(death.realtime_ns, kill->realtime_ns);
  } else if (sought.pids_agree && reaches_back && only_others(kills, sought)) {
    death.flags |= session::kDeathOthers;
  }
}

void read_cgroup(Death& death, const session::View& view, const Watched& watched) {
  const session::Health& health = view.header().health;
  // In a container its path is another's.
  if (!is_this_host(view.header())) return;
  const fs::path recorded{view.string(view.header().cgroup)};
  const fs::path own = recorded.empty() ? watched.cgroup.directory : recorded;
  if (own.empty()) return;
  std::error_code error;
  const bool gone = !fs::is_directory(own, error);
  const bool was_watched = own == watched.cgroup.directory;
  if (was_watched) {
    if (watched.at_once) death.flags |= session::kDeathAtOnce;
    if (watched.alone) death.flags |= session::kDeathAlone;
    if (watched.others) death.flags |= session::kDeathOthers;
  }
  std::optional<std::uint64_t> before;
  const auto after = gone ? oom_kills_below(own.parent_path()) : oom_kills_in(own);
  if (gone) {
    death.flags |= session::kDeathParentCgroup;
    if (was_watched) before = watched.parent_kills_before;
    if (after && *after == 0) before = after;
  } else if (health.time_ns != 0) {
    before = health.cgroup_oom_kills.load();
  } else if (was_watched) {
    before = watched.kills_before;
  }
  if (!before || !after) return;
  death.flags |= session::kDeathCgroupCounted;
  death.cgroup_oom_kills_before = *before;
  death.cgroup_oom_kills_after = *after;
}

void read_machine(Death& death, const session::View& view, const Watched& watched) {
  const session::Health& health = view.header().health;
  const auto before = health.time_ns != 0 ? std::optional{health.system_oom_kills.load()}
                                          : watched.system_kills_before;
  const auto after = system_oom_kills();
  if (!before || !after) return;
  death.flags |= session::kDeathSystemCounted;
  death.system_oom_kills_before = *before;
  death.system_oom_kills_after = *after;
}

// Whether the file system of its shared memory, if that is the one seen here, has room now.
void read_shared_memory(Death& death, const session::Header& header) {
  constexpr long kTmpfs = 0x01021994;
  const session::SharedMemory& shared = header.shared;
  if (shared.time_ns == 0 || !is_this_host(header)) return;
  const std::string path{shared.path, strnlen(shared.path, sizeof shared.path)};
  struct statfs now {};
  if (!path.starts_with('/') || statfs(fs::path{path}.parent_path().c_str(), &now) != 0) return;
  const auto block_bytes = static_cast<std::uint64_t>(now.f_bsize);
  if (now.f_type != kTmpfs || now.f_blocks * block_bytes != shared.total_bytes) return;
  if (now.f_bavail <= now.f_blocks / 100) death.flags |= session::kDeathSharedFull;
}

}  // namespace

Death death_of(const session::View& view, const Watched& watched) {
  Death death{};
  death.realtime_ns = watched.realtime_ns != 0 ? watched.realtime_ns : system::realtime_ns();
  const bool this_boot = is_this_boot(view.header());
  if (!this_boot) death.flags |= session::kDeathEarlierBoot;
  if (watched.wait_status) {
    death.flags |= session::kDeathWaited;
    death.wait_status = *watched.wait_status;
    death.sender_pid = watched.sender;
    death.pressure_some = watched.pressure.some;
    death.pressure_full = watched.pressure.full;
  }
  if (death.sender_pid == 0) death.sender_pid = view.header().crash.sender_pid;
  if (watched.dismissed) death.flags |= session::kDeathDismissed;
  if (this_boot) {
    read_cgroup(death, view, watched);
    read_machine(death, view, watched);
    read_shared_memory(death, view.header());
  }
  read_log(death, view, this_boot);
  return death;
}

}  // namespace oomrec::tools::deaths
