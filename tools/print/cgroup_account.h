// The memory of the whole cgroup, or of the machine, at a kill.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// As "cgroup_account" of metadata.json; null: there is none.
Json cgroup_account_json(const bundles::Source&);

// Lines of its parts, without those that are 0; empty: there is none.
std::string cgroup_account_text(const bundles::Source&);

}  // namespace oomrec::tools::print
