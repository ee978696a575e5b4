// The names under which the parts of a CgroupAccount appear in JSON.
#pragma once

#include <iterator>
#include <string_view>

#include "common/session/evidence.h"

namespace oomrec::session {

struct AccountField {
  std::string_view key;
  u64 CgroupAccount::*bytes;
};

inline constexpr AccountField kAccountTotals[] = {
    {"limit_bytes", &CgroupAccount::limit_bytes},
    {"usage_bytes", &CgroupAccount::usage_bytes},
};
// They add up to the usage.
inline constexpr AccountField kAccountParts[] = {
    {"recorded_bytes", &CgroupAccount::recorded_bytes},
    {"unrecorded_bytes", &CgroupAccount::unrecorded_bytes},
    {"shared_bytes", &CgroupAccount::shared_bytes},
    {"file_bytes", &CgroupAccount::file_bytes},
    {"slab_bytes", &CgroupAccount::slab_bytes},
    {"kernel_bytes", &CgroupAccount::kernel_bytes},
    {"other_bytes", &CgroupAccount::other_bytes},
};
inline constexpr AccountField kAccountOfProcess[] = {
    {"anonymous_bytes", &CgroupAccount::own_anonymous_bytes},
    {"file_bytes", &CgroupAccount::own_file_bytes},
    {"shared_bytes", &CgroupAccount::own_shared_bytes},
};

// Of the whole cgroup.
inline bool has_account(const CgroupAccount& account) noexcept { return account.usage_bytes != 0; }
inline std::string_view source_of(const CgroupAccount& account) noexcept {
  constexpr std::string_view kNames[] = {"none", "kernel_log", "memory_stat", "kill_line"};
  return account.source < std::size(kNames) ? kNames[account.source] : kNames[0];
}
inline std::string_view scope_of(const CgroupAccount& account) noexcept {
  return account.scope == static_cast<u32>(AccountScope::machine) ? "machine" : "cgroup";
}
inline std::string_view largest_name_of(const CgroupAccount& account) noexcept {
  const std::string_view name{account.largest_name, sizeof account.largest_name};
  return name.substr(0, name.find('\0'));
}

}  // namespace oomrec::session
