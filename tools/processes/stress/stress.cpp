#include "tools/processes/stress/stress.h"

#include <cstdlib>

#include "tools/base/error.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/supervise/self.h"

namespace oomrec::tools::processes {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// The size of a GPU limits its memory.
bool is_limited(const StressPlan& plan, const std::string& limit) {
  return plan.is_on_device() || !limit.empty() || is_set("OOMREC_LIMIT") ||
         is_set("OOMREC_LIMIT_AS") || !limits_in_force().empty();
}

}  // namespace

int run_stress(const StressPlan& plan, const std::string& limit,
               const std::vector<std::string>& child_words) {
  if (!is_limited(plan, limit)) {
    throw Error{Exit::bad_input, "no limit is set: the machine itself would run out of memory",
                "Set a limit: oomrec stress --limit 256M --max 1G"};
  }
  std::vector<std::string> options;
  if (!limit.empty()) options = {plan.is_on_device() ? "--limit-gpu" : "--limit", limit};
  return exit_code_of(run_self({options, child_words}).ended.wait_status);
}

}  // namespace oomrec::tools::processes
