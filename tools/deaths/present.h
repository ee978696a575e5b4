// How a recorded process fares now, seen from outside: it may not have looked itself for long.
#pragma once

#include <memory>

#include "common/limits/ceilings.h"
#include "common/session/view.h"

namespace oomrec::tools::deaths {

// What it saw itself last, and over that what can be read of it here. `in_sight`: its pid means the
// same here.
std::unique_ptr<session::Health> present_health(const session::View& view, bool in_sight);

// The cgroup that its limit is of: its own or an ancestor, where it is visible here.
limit::CgroupPlace limiting_cgroup(const session::View& view);

}  // namespace oomrec::tools::deaths
