#include "tools/deaths/current_health.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/limits/cgroup.h"
#include "common/limits/health.h"
#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::tools::deaths {

namespace fs = std::filesystem;

fs::path recorded_cgroup(const session::View& view) {
  const fs::path recorded{view.string(view.header().cgroup)};
  if (!recorded.is_absolute()) return {};
  std::error_code error;
  const fs::path root = fs::weakly_canonical(system::g_roots.cgroup, error);
  if (error) return {};
  const fs::path path = fs::weakly_canonical(recorded, error);
  if (error) return {};
  const auto first_other = std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first;
  return first_other == root.end() ? recorded : fs::path{};
}

limit::CgroupDirectories limiting_cgroup(const fs::path& directory) {
  limit::CgroupDirectories cgroup{};
  std::error_code error;
  if (!fs::is_directory(directory, error)) return cgroup;
  cgroup.v1 = fs::exists(directory / "memory.limit_in_bytes", error);
  system::Text{cgroup.own} << directory.c_str();
  const char* const file = cgroup.v1 ? "/memory.limit_in_bytes" : "/memory.max";
  // As it is now: it may have been set since the process has read it.
  std::uint64_t lowest = 0, found = 0;
  for (fs::path at = directory; at.has_relative_path(); at = at.parent_path()) {
    if (!limit::read_cgroup_number(at.c_str(), file, found) || (lowest != 0 && found >= lowest))
      continue;
    lowest = found;
    system::Text{cgroup.limiting} << at.c_str();
  }
  return cgroup;
}

std::unique_ptr<session::Health> recorded_health(const session::View& view) {
  auto health = std::make_unique<session::Health>();
  std::memcpy(static_cast<void*>(health.get()), static_cast<const void*>(&view.header().health),
              sizeof *health);
  return health;
}

std::unique_ptr<session::Health> current_health(const session::View& view) {
  const session::Header& header = view.header();
  auto health = recorded_health(view);
  std::int64_t live = 0;
  for (const Space space : {Space::heap, Space::map}) live += view.totals(space).live_bytes;
  health->live_bytes = live < 0 ? 0 : static_cast<std::uint64_t>(live);
  const limit::CgroupDirectories cgroup = limiting_cgroup(recorded_cgroup(view));
  const InHook outside = OutsideHooks::in_hook();
  limit::read_quick_health(outside, cgroup, *health, header.pid);
  limit::read_slow_health(outside, cgroup, *health, header.pid);
  return health;
}

}  // namespace oomrec::tools::deaths
