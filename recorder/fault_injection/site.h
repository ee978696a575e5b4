// Searches a stack for the site that a rule of --fail names.
#pragma once

#include "common/options/fault_rules.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// `node`: the calling thread's current stack, so its modules stay mapped. Cost: a walk over its
// nodes, and for a native site a search in each module of that name.
bool is_site_on_stack(InHook, const options::InjectionRule&, std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
