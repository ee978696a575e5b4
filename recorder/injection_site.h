// Whether the site that a rule of --fail names is on a stack of the session.
#pragma once

#include "common/options/fault_rules.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// `node`: a stack of the calling thread, as it is now: so its modules stay where they are. Cost: a
// walk over its nodes, for a native site also a look into each module of that name.
bool is_site_on_stack(InHook, const options::InjectionRule&, std::uint32_t node) noexcept;

}  // namespace oomrec::recorder
