// The programs that end others before the kernel does: their names, and their part of a verdict's
// sentence. What each of them writes into which log is in tools/deaths/user_killers.cpp.
#pragma once

#include <string_view>

#include "common/session/evidence.h"

namespace oomrec::verdict {

struct UserKillerRow {
  session::UserKiller killer;
  std::string_view name;   // as in an exported row
  std::string_view words;  // "killed by …"
};
inline constexpr UserKillerRow kUserKillers[] = {
    {session::UserKiller::systemd_oomd, "systemd-oomd",
     "systemd-oomd, which ends processes when memory is short"},
    {session::UserKiller::oomd, "oomd", "oomd, which ends cgroups when memory is short"},
    {session::UserKiller::earlyoom, "earlyoom",
     "earlyoom, which ends processes when memory is short"},
    {session::UserKiller::kubelet, "kubelet",
     "the kubelet, which evicts pods when the node's memory is short"},
    {session::UserKiller::lmkd, "lmkd", "lmkd, which ends processes when memory is short"},
    {session::UserKiller::nohang, "nohang", "nohang, which ends processes when memory is short"},
    {session::UserKiller::talos, "talos", "Talos, which ends cgroups when memory is short"},
};

}  // namespace oomrec::verdict
