#include "tools/deaths/present.h"

#include <cstring>
#include <filesystem>

#include "common/limits/cgroup.h"
#include "common/limits/health.h"
#include "common/system/text.h"

namespace oomrec::tools::deaths {

limit::CgroupPlace limiting_cgroup(const session::View& view) {
  limit::CgroupPlace place{};
  std::error_code error;
  const std::filesystem::path directory{view.string(view.header().cgroup)};
  if (!std::filesystem::is_directory(directory, error)) return place;
  place.v1 = std::filesystem::exists(directory / "memory.limit_in_bytes", error);
  system::Text{place.own} << directory.c_str();
  const char* const file = place.v1 ? "/memory.limit_in_bytes" : "/memory.max";
  const std::uint64_t limit = view.header().health.cgroup_limit_bytes.load();
  std::uint64_t found = 0;
  for (std::filesystem::path at = directory; at.has_relative_path(); at = at.parent_path()) {
    if (!limit::read_cgroup_number(at.c_str(), file, found) || found != limit) continue;
    system::Text{place.limiting} << at.c_str();
    break;
  }
  return place;
}

std::unique_ptr<session::Health> present_health(const session::View& view, bool in_sight) {
  const session::Header& header = view.header();
  auto health = std::make_unique<session::Health>();
  std::memcpy(static_cast<void*>(health.get()), static_cast<const void*>(&header.health),
              sizeof *health);
  if (!in_sight) return health;
  std::int64_t live = 0;
  for (const Space space : {Space::heap, Space::map}) live += view.totals(space).live_bytes;
  health->live_bytes = live < 0 ? 0 : static_cast<std::uint64_t>(live);
  const limit::CgroupPlace place = limiting_cgroup(view);
  const InHook outside = OutsideHooks::in_hook();
  limit::look_quickly(outside, place, *health, header.pid);
  limit::look_thoroughly(outside, place, *health, header.pid);
  return health;
}

}  // namespace oomrec::tools::deaths
