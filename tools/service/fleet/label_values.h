// Which values the labels of counters can have: each is there at 0 before anything is counted,
// because a series that is born at 1 has no increase.
#pragma once

#include <string_view>
#include <vector>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

// What can be refused; of a GPU's driver only where there is one. A refusal of any other function
// counts as `other`.
enum class ApiSet { host, cuda, hip };
const std::vector<Api>& refusable_apis(ApiSet);
ApiSet set_of(Api);
std::string_view api_label(Api);  // Api::none: "other"

const std::vector<Trigger>& counted_triggers();

// How a process can end: `exited` by itself, after whatever it was told of before.
const std::vector<VerdictCode>& verdicts_of_deaths();
bool is_of_a_death(VerdictCode);

// Of those, the ones whose reason is memory.
bool is_for_memory(VerdictCode);

}  // namespace oomrec::tools::service
